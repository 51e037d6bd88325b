package org.apache.hadoop.fs;

/** Hadoop's local file system, sum files and all, over files whose modes are set without a process. */
public class UnforkedLocalFileSystem extends LocalFileSystem {
  public UnforkedLocalFileSystem() {
    super(new UnforkedRawLocalFileSystem());
  }
}
