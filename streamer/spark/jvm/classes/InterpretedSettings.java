package org.apache.spark.sql.internal;

import java.lang.reflect.Field;

/** Settings of threads that run for no session: without them Java code is generated there. */
public final class InterpretedSettings extends ThreadLocal {
  private final String mode;

  private InterpretedSettings(String mode) {
    this.mode = mode;
  }

  /**
   * Gives them to all threads that ask for the first time.
   *
   * @param mode how projections are made, as Spark's setting has it.
   */
  public static void install(String mode) throws ReflectiveOperationException {
    // The field is set when it is first asked for.
    SQLConf$.MODULE$.getFallbackConf();
    Field field = SQLConf$.class.getDeclaredField("fallbackConf");
    field.setAccessible(true);
    field.set(null, new InterpretedSettings(mode));
  }

  /** Returns the settings of a thread. */
  @Override
  protected Object initialValue() {
    SQLConf settings = new SQLConf();
    settings.setConfString("spark.sql.codegen.factoryMode", mode);
    return settings;
  }
}
