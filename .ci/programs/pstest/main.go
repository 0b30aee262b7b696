// The server that tests of the Google Pub/Sub broker use: Google's own in-memory implementation of the service.
//
// It listens on a loopback port, the one that is its first argument or any free one, and prints the address. It ends
// when its standard input ends, so it never outlives the test that started it.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strconv"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func main() {
	port := 0
	if len(os.Args) > 1 {
		number, err := strconv.Atoi(os.Args[1])
		if err != nil {
			log.Fatal(err)
		}
		port = number
	}
	server := pstest.NewServerWithPort(port)
	defer server.Close()
	fmt.Println(server.Addr)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
