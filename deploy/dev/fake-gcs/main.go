// A server that speaks Google Cloud Storage's JSON API, for tests: HOST PORT DIRECTORY.
package main

import (
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

func main() {
	host := os.Args[1]
	port, err := strconv.ParseUint(os.Args[2], 10, 16)
	if err != nil {
		log.Fatal(err)
	}
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		Scheme:      "http",
		Host:        host,
		Port:        uint16(port),
		StorageRoot: os.Args[3],
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
	server.Stop()
}
