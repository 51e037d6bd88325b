// A server that speaks MongoDB's protocol, for tests: ADDRESS DIRECTORY.
package main

import (
	"context"
	"log"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[2] + "/",
	})
	if err == nil {
		err = server.Run(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
}
