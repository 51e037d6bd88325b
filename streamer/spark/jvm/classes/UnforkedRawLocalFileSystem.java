package org.apache.hadoop.fs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;

import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's plain local files. It sets the mode of each file it creates by a process `chmod`. */
public class UnforkedRawLocalFileSystem extends RawLocalFileSystem {
  private static final int RIGHTS = 0777;

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    int mode = permission.toShort();
    if ((mode & ~RIGHTS) != 0) {
      super.setPermission(path, permission);
      return;
    }
    String letters = "rwxrwxrwx";
    StringBuilder rights = new StringBuilder();
    for (int at = 0; at < letters.length(); at++) {
      boolean has = (mode & (0400 >> at)) != 0;
      rights.append(has ? letters.charAt(at) : '-');
    }
    Files.setPosixFilePermissions(
        pathToFile(path).toPath(), PosixFilePermissions.fromString(rights.toString()));
  }
}
