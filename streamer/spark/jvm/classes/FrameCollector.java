package org.apache.spark.sql.execution;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;

import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.runtime.AbstractFunction2;

/** Collects the frames of a micro-batch without planning another query for them. */
public final class FrameCollector extends AbstractFunction2 implements Serializable {
  private static final int MAX_ANSWER = 1 << 20;
  private static final int PORTION = 16 << 20;

  /**
   * Runs a micro-batch.
   *
   * @return its frames as bytes, one after the other; where these are many, the place where Python
   *     can read portions of them; null where the rows are not those that Spark gives a sink.
   */
  public static Object collect(Dataset frames) {
    Object plan = frames.queryExecution().logical();
    if (!(plan instanceof LogicalRDD)) {
      return null;
    }
    SparkContext context = frames.sparkSession().sparkContext();
    Object[] tasks =
        (Object[])
            context.runJob(
                ((LogicalRDD) plan).rdd(), new FrameCollector(), ClassTag.apply(Object.class));
    List portions = new ArrayList();
    long size = 0;
    for (int task = 0; task < tasks.length; task++) {
      byte[][] made = (byte[][]) tasks[task];
      for (int number = 0; number < made.length; number++) {
        portions.add(made[number]);
        size += made[number].length;
      }
    }
    if (size > MAX_ANSWER) {
      return PythonRDD.serveIterator(
          CollectionConverters.asScala(portions.iterator()), "serve frames");
    }
    byte[] answer = new byte[(int) size];
    int at = 0;
    for (int number = 0; number < portions.size(); number++) {
      byte[] portion = (byte[]) portions.get(number);
      System.arraycopy(portion, 0, answer, at, portion.length);
      at += portion.length;
    }
    return answer;
  }

  /** Turns the rows of a task into portions of bytes. */
  @Override
  public Object apply(Object context, Object rows) {
    Iterator frames = (Iterator) rows;
    List portions = new ArrayList();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      DataOutputStream out = new DataOutputStream(bytes);
      while (frames.hasNext()) {
        write((InternalRow) frames.next(), out);
        if (bytes.size() >= PORTION) {
          portions.add(bytes.toByteArray());
          bytes.reset();
        }
      }
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
    if (bytes.size() > 0) {
      portions.add(bytes.toByteArray());
    }
    return (byte[][]) portions.toArray(new byte[portions.size()][]);
  }

  private static void write(InternalRow row, DataOutputStream out) throws IOException {
    byte[] route = row.getUTF8String(5).getBytes();
    byte[] body = row.getBinary(6);
    out.writeInt(row.getInt(0));
    out.writeLong(row.getLong(1));
    out.writeInt(row.getInt(2));
    out.writeInt(row.getInt(3));
    out.writeInt(row.getInt(4));
    out.writeInt(route.length);
    out.writeInt(body.length);
    out.write(route);
    out.write(body);
  }
}
