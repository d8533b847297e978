// DStreams that only Scala can write: a direct stream of Kafka, and state that Kryo has packed.
package floodmark.scalacode

import java.nio.file.{Files, Paths, StandardCopyOption}

import org.apache.kafka.common.serialization.StringDeserializer
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.streaming.{Milliseconds, State, StateSpec, StreamingContext}
import org.apache.spark.streaming.kafka010.{ConsumerStrategies, KafkaUtils, LocationStrategies}

case class Paid(orders: Long, cents: Long)

object DStreamsCode {
  /** Orders `customer,cents` of a topic, summed; each batch writes all totals to a file. */
  def sales(
      sc: SparkContext,
      kafka: String,
      topic: String,
      checkpoint: String,
      out: String): StreamingContext = {
    val ssc = new StreamingContext(sc, Milliseconds(500))
    ssc.checkpoint(checkpoint)
    val params = Map[String, Object](
      "bootstrap.servers" -> kafka,
      "key.deserializer" -> classOf[StringDeserializer],
      "value.deserializer" -> classOf[StringDeserializer],
      "group.id" -> s"dstreams-$topic",
      "auto.offset.reset" -> "earliest",
      "enable.auto.commit" -> java.lang.Boolean.FALSE)
    val records = KafkaUtils.createDirectStream[String, String](
      ssc,
      LocationStrategies.PreferConsistent,
      ConsumerStrategies.Subscribe[String, String](Seq(topic), params))
    val orders = records.map(_.value.split(",")).map(row => (row(0), row(1).toLong))
    val totals = orders.updateStateByKey[Paid](
      (cents: Seq[Long], old: Option[Paid]) => {
        val before = old.getOrElse(Paid(0L, 0L))
        Some(Paid(before.orders + cents.size, before.cents + cents.sum))
      }, 2)
    totals.checkpoint(Milliseconds(1000))
    totals.foreachRDD { rdd =>
      val rows = rdd.collect().map { case (customer, paid) =>
        s""""$customer": [${paid.orders}, ${paid.cents}]"""
      }
      val beside = Paths.get(out + ".tmp")
      Files.write(beside, rows.mkString("{", ", ", "}").getBytes("UTF-8"))
      Files.move(beside, Paths.get(out), StandardCopyOption.ATOMIC_MOVE)
    }
    ssc
  }

  /** Two states over files: pairs of a case class, and mapWithState's own records. */
  def visits(sc: SparkContext, input: String, checkpoint: String): StreamingContext = {
    val ssc = new StreamingContext(sc, Milliseconds(500))
    ssc.checkpoint(checkpoint)
    val orders = ssc.textFileStream(input).map(_.split(",")).map(row => (row(0), row(1).toLong))
    val paid = orders.updateStateByKey[Paid](
      (cents: Seq[Long], old: Option[Paid]) =>
        Some(Paid(old.fold(0L)(_.orders) + cents.size, old.fold(0L)(_.cents) + cents.sum)), 2)
    paid.checkpoint(Milliseconds(1000))
    paid.foreachRDD { rdd => rdd.count(); () }
    val counted = orders.mapWithState(
      StateSpec.function { (key: String, cents: Option[Long], state: State[Long]) =>
        state.update(state.getOption().getOrElse(0L) + cents.getOrElse(0L))
        key
      }.numPartitions(2))
    counted.checkpoint(Milliseconds(1000))
    counted.foreachRDD { rdd => rdd.count(); () }
    ssc
  }

  /** As a user submits it: recovered from the checkpoint, else begun. */
  def main(args: Array[String]): Unit = {
    val checkpoint = args.last
    val ssc = StreamingContext.getOrCreate(
      checkpoint,
      () => {
        val sc = new SparkContext(new SparkConf())
        args match {
          case Array(kafka, topic, out, _) => sales(sc, kafka, topic, checkpoint, out)
          case Array(input, _) => visits(sc, input, checkpoint)
        }
      })
    ssc.start()
    ssc.awaitTermination()
  }
}
