// Runs kfake, a Kafka broker in memory, on a loopback port until it is killed.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 0, "port to listen on; 0 takes a free one")
	flag.Parse()
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(*port),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(1)
	}
	fmt.Println("listening on", cluster.ListenAddrs()[0])
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	cluster.Close()
}
