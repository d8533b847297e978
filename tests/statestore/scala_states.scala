/* What only Scala can ask of Spark, compiled into the tests' own JVM (see scala_code.py):
 * flatMapGroupsWithState and transformWithState with Scala's types, and a frame's rows as
 * text that says what is stored, so that no type is lost on its way to Python.
 */
package floodmark.scalacode

import java.sql.Timestamp
import java.time.{Duration => Span, LocalDate, LocalDateTime, Period}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame, Encoder, Encoders}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.streaming._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{BinaryView, CalendarInterval, UTF8String, VariantVal}

object Rows {
  /** One text a row; times are their numbers, floats their bits, decimals their digits. */
  def spoken(frame: DataFrame): java.util.List[String] = {
    val schema = frame.schema
    frame.queryExecution.toRdd.map(row => say(row, schema)).collect().toSeq.asJava
  }

  private def hex(bytes: Array[Byte]): String = bytes.map(b => f"$b%02x").mkString("x", "", "")

  private def all(array: ArrayData, of: DataType): Seq[String] =
    (0 until array.numElements()).map { at =>
      if (array.isNullAt(at)) "null" else say(array.get(at, of), of)
    }

  private def say(value: Any, of: DataType): String = (value, of) match {
    case (null, _) => "null"
    case (_, udt: UserDefinedType[_]) => say(value, udt.sqlType)
    case (row: InternalRow, StructType(fields)) =>
      fields.indices.map { at =>
        val inner = fields(at).dataType match {
          case udt: UserDefinedType[_] => udt.sqlType
          case other => other
        }
        if (row.isNullAt(at)) "null" else say(row.get(at, inner), inner)
      }.mkString("(", ", ", ")")
    case (array: ArrayData, ArrayType(element, _)) => all(array, element).mkString("[", ", ", "]")
    case (map: MapData, MapType(key, item, _)) =>
      all(map.keyArray(), key).zip(all(map.valueArray(), item))
        .map { case (k, v) => s"$k: $v" }.sorted.mkString("{", ", ", "}")
    case (text: UTF8String, _) => "'" + text + "'"
    case (bytes: Array[Byte], _) => hex(bytes)
    case (bytes: BinaryView, _) => hex(bytes.getBytes)
    case (number: Decimal, _) =>
      s"d${number.toJavaBigDecimal.unscaledValue}/${number.toJavaBigDecimal.scale}"
    case (number: Float, _) => f"f${java.lang.Float.floatToRawIntBits(number)}%08x"
    case (number: Double, _) => f"f${java.lang.Double.doubleToRawLongBits(number)}%016x"
    case (span: CalendarInterval, _) => s"${span.months}m ${span.days}d ${span.microseconds}us"
    case (found: VariantVal, _) => hex(found.getValue) + "/" + hex(found.getMetadata)
    case _ => value.toString
  }
}

case class Event(
    id: Long, name: String, amount: BigDecimal, at: Timestamp, tags: Seq[String])

case class Inner(label: String, ratio: Double, ids: Seq[Long])

/** A bit of everything that transformWithState takes. */
case class Memory(
    total: Long,
    trail: String,
    maybe: Option[Int],
    inner: Inner,
    tags: Map[String, Int],
    inners: Seq[Inner],
    amount: BigDecimal,
    at: Timestamp,
    day: LocalDate,
    local: LocalDateTime,
    blob: Array[Byte],
    flag: Boolean)

/** And what it refuses, though flatMapGroupsWithState does not. */
case class Spanned(
    memory: Memory, span: Span, period: Period, byPair: Map[Pair, Memory], small: Byte)

object Spanned {
  def of(before: Option[Spanned], name: String, events: Seq[Event]): Spanned = {
    val now = Memory.of(before.map(_.memory), events)
    Spanned(
      now,
      Span.ofMillis(-now.total),
      if (now.total == 1) null else Period.ofMonths(now.total.toInt),
      Map(Pair(name, now.total) -> now),
      (-now.total).toByte)
  }
}

case class Pair(left: String, right: Long)

object Memory {
  def of(before: Option[Memory], events: Seq[Event]): Memory = {
    val total = before.map(_.total).getOrElse(0L) + events.size
    val last = events.maxBy(_.id)
    val inner = Inner(last.name, total / 3.0, events.map(_.id).sorted)
    val tags = events.flatMap(e => Option(e.tags).getOrElse(Nil)).filter(_ != null)
    Memory(
      total,
      before.map(_.trail).getOrElse("") + total,
      if (total % 2 == 0) Some(total.toInt) else None,
      if (total == 1) null else inner,
      before.map(_.tags).getOrElse(Map.empty) ++ tags.sorted.map(_ -> total.toInt),
      before.map(_.inners).getOrElse(Nil) :+ inner,
      last.amount,
      last.at,
      LocalDate.ofEpochDay(-total),
      LocalDateTime.of(1960, 1, 1, 0, 0).plusNanos(total * 1000),
      if (total == 2) null else Array[Byte](total.toByte, -1),
      total > 1)
  }
}

object Groups {
  private implicit val events: Encoder[Event] = Encoders.product[Event]
  private implicit val memory: Encoder[Spanned] = Encoders.product[Spanned]
  private implicit val pair: Encoder[Pair] = Encoders.product[Pair]
  private implicit val out: Encoder[(String, Long)] = Encoders.product[(String, Long)]
  private implicit val text: Encoder[String] = Encoders.STRING
  private implicit val number: Encoder[Long] = Encoders.scalaLong

  private def expire(state: GroupState[_], timeout: String): Unit = timeout match {
    case "ProcessingTime" => state.setTimeoutDuration(3600000L)
    case "EventTime" => state.setTimeoutTimestamp(4000000000000L)
    case _ =>
  }

  private def timeoutOf(name: String): GroupStateTimeout = name match {
    case "ProcessingTime" => GroupStateTimeout.ProcessingTimeTimeout
    case "EventTime" => GroupStateTimeout.EventTimeTimeout
    case _ => GroupStateTimeout.NoTimeout
  }

  /** The whole case class as state; `bob` is forgotten when he comes again. */
  def memories(frame: DataFrame, timeout: String): DataFrame =
    frame.as[Event].groupByKey(e => e.name)
      .flatMapGroupsWithState[Spanned, (String, Long)](OutputMode.Update, timeoutOf(timeout)) {
        (name: String, found: Iterator[Event], state: GroupState[Spanned]) =>
          if (name == "bob" && state.exists) state.remove()
          else {
            state.update(Spanned.of(state.getOption, name, found.toSeq))
            expire(state, timeout)
          }
          Iterator((name, 1L))
      }.toDF("name", "total")

  /** One number as state, under a key of two columns. */
  def numbers(frame: DataFrame, timeout: String): DataFrame =
    frame.as[Event].groupByKey(e => Pair(e.name, e.id % 2))
      .flatMapGroupsWithState[Long, (String, Long)](OutputMode.Update, timeoutOf(timeout)) {
        (key: Pair, found: Iterator[Event], state: GroupState[Long]) =>
          state.update(state.getOption.getOrElse(0L) + found.size)
          expire(state, timeout)
          Iterator((key.left, state.get))
      }.toDF("name", "total")

  /** A timeout without a state: its row says that there is none. */
  def timersAlone(frame: DataFrame): DataFrame =
    frame.as[Event].groupByKey(e => e.name)
      .flatMapGroupsWithState[Spanned, (String, Long)](
        OutputMode.Update, GroupStateTimeout.ProcessingTimeTimeout) {
        (name: String, found: Iterator[Event], state: GroupState[Spanned]) =>
          if (name == "ann") state.update(Spanned.of(None, name, found.toSeq))
          state.setTimeoutDuration(3600000L)
          Iterator((name, 1L))
      }.toDF("name", "total")
}

class Remember(ttl: Long, eventTime: Boolean)
    extends StatefulProcessor[String, Event, (String, Long)] {
  @transient private var total: ValueState[Long] = _
  @transient private var memory: ValueState[Memory] = _
  @transient private var ids: ListState[Long] = _
  @transient private var inners: ListState[Inner] = _
  @transient private var tags: MapState[String, Int] = _
  @transient private var pairs: MapState[Pair, Memory] = _

  private def expiry: TTLConfig = if (ttl > 0) TTLConfig(Span.ofMillis(ttl)) else TTLConfig.NONE

  override def init(output: OutputMode, time: TimeMode): Unit = {
    val handle = getHandle
    total = handle.getValueState("total", Encoders.scalaLong, expiry)
    memory = handle.getValueState("memory", Encoders.product[Memory], expiry)
    ids = handle.getListState("ids", Encoders.scalaLong, expiry)
    inners = handle.getListState("inners", Encoders.product[Inner], expiry)
    tags = handle.getMapState("tags", Encoders.STRING, Encoders.scalaInt, expiry)
    pairs = handle.getMapState(
      "pairs", Encoders.product[Pair], Encoders.product[Memory], expiry)
  }

  override def handleInputRows(
      key: String, rows: Iterator[Event], timers: TimerValues): Iterator[(String, Long)] = {
    val found = rows.toSeq
    val before = if (memory.exists()) Some(memory.get()) else None
    val now = Memory.of(before, found)
    memory.update(now)
    total.update(now.total)
    found.foreach(e => ids.appendValue(e.id))
    if (key == "bob" && before.nonEmpty) inners.put(Array(now.inners.last))
    else inners.appendList(now.inners.toArray)
    if (key == "ann" && before.nonEmpty) tags.clear()
    now.tags.foreach { case (tag, times) => tags.updateValue(tag, times) }
    pairs.updateValue(Pair(key, now.total), now)
    if (now.total > 1) pairs.removeKey(Pair(key, now.total - 1))
    val at = if (eventTime) timers.getCurrentWatermarkInMs() else 0L
    getHandle.registerTimer(4000000000000L + now.total + at % 1)
    if (now.total > 1) getHandle.deleteTimer(4000000000000L + now.total - 1)
    Iterator((key, now.total))
  }
}

object Transforms {
  private implicit val events: Encoder[Event] = Encoders.product[Event]
  private implicit val out: Encoder[(String, Long)] = Encoders.product[(String, Long)]
  private implicit val text: Encoder[String] = Encoders.STRING

  def remember(frame: DataFrame, ttlMs: Long, eventTime: Boolean): DataFrame =
    frame.as[Event].groupByKey(e => if (e.name == null) "nobody" else e.name)
      .transformWithState(
        new Remember(ttlMs, eventTime),
        if (eventTime) TimeMode.EventTime() else TimeMode.ProcessingTime(),
        OutputMode.Update())
      .toDF("name", "total")
}
