// A DStreams application that only Scala can write: mapWithState, updateStateByKey of a case
// class, and a receiver with a write-ahead log. Compiled by the golden script.
package floodmark.golden

import org.apache.spark.SparkContext
import org.apache.spark.storage.StorageLevel
import org.apache.spark.streaming.{Milliseconds, Minutes, State, StateSpec, StreamingContext}
import org.apache.spark.streaming.receiver.Receiver

case class Visits(count: Long, spent: Double)

class Ticks extends Receiver[String](StorageLevel.MEMORY_ONLY) {
  def onStart(): Unit = {
    val thread = new Thread("ticks") {
      override def run(): Unit = while (!isStopped()) { store("tick"); Thread.sleep(200) }
    }
    thread.setDaemon(true)
    thread.start()
  }
  def onStop(): Unit = ()
}

object DStreamsInScala {
  @volatile var visits: Map[String, (Long, Double)] = Map.empty
  @volatile var sums: Map[String, Double] = Map.empty
  @volatile var ticks: Long = 0L

  def visitsOf(name: String): String = visits.get(name).map(_.toString).getOrElse("")
  def sumOf(name: String): Double = sums.getOrElse(name, 0.0)

  def context(sc: SparkContext, input: String, checkpoint: String): StreamingContext = {
    val ssc = new StreamingContext(sc, Milliseconds(1000))
    ssc.checkpoint(checkpoint)
    val orders = ssc.textFileStream(input).map(_.split(",")).map(at => (at(0), at(1).toDouble))
    val counted = orders.mapWithState(
      StateSpec.function { (key: String, paid: Option[Double], state: State[(Long, Double)]) =>
        val (count, sum) = state.getOption().getOrElse((0L, 0.0))
        if (!state.isTimingOut()) state.update((count + 1, sum + paid.getOrElse(0.0)))
        key
      }.numPartitions(2).timeout(Minutes(60)))
    counted.checkpoint(Milliseconds(5000))
    counted.stateSnapshots().foreachRDD { rdd => visits = rdd.collect().toMap }
    val spent = orders.updateStateByKey[Visits](
      (paid: Seq[Double], old: Option[Visits]) => {
        val before = old.getOrElse(Visits(0L, 0.0))
        Some(Visits(before.count + paid.size, before.spent + paid.sum))
      }, 2)
    spent.checkpoint(Milliseconds(5000))
    spent.foreachRDD { rdd => sums = rdd.mapValues(_.spent).collect().toMap }
    ssc.receiverStream(new Ticks).foreachRDD { rdd => ticks += rdd.count() }
    ssc
  }
}
