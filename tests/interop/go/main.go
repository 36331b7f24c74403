// Command interop tests a broker with the Go clients franz-go and sarama: "interop franz|sarama|dropped|registry HOST:PORT PREFIX [SCENARIO...]".
// "interop follow HOST:PORT TOPIC GROUP" prints records until it is ended.
// It runs all scenarios, or those that are named, and prints "ok NAME" for each. The first failure ends it with exit code 1.
package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

const (
	baseTime = int64(1_700_000_000_000)
	patience = 30 * time.Second
)

// message is sent and read back by both clients.
type message struct {
	key, value []byte
	header     string
	time       int64
}

type scenario struct {
	name string
	run  func(bootstrap, prefix string) error
}

// messages are plain ones, a tombstone, one without a key, and one with an empty key and value. Their timestamps are 1 s apart.
func messages() []message {
	var all []message
	for index := range 20 {
		all = append(all, message{key: fmt.Appendf(nil, "k%d", index), value: fmt.Appendf(nil, "value %d", index), header: "h"})
	}
	all = append(all, message{key: []byte("tombstone")}, message{value: []byte("no key")}, message{key: []byte{}, value: []byte{}})
	for index := range all {
		all[index].time = baseTime + int64(index)*1000
	}
	return all
}

func same(sent message, key, value []byte, header string, milliseconds int64) error {
	if string(sent.key) != string(key) || (sent.key == nil) != (key == nil) {
		return fmt.Errorf("key %q where %q was sent", key, sent.key)
	}
	if string(sent.value) != string(value) || (sent.value == nil) != (value == nil) {
		return fmt.Errorf("value %q where %q was sent", value, sent.value)
	}
	if sent.header != header || sent.time != milliseconds {
		return fmt.Errorf("header %q and time %d where %q and %d were sent", header, milliseconds, sent.header, sent.time)
	}
	return nil
}

func main() {
	clients := map[string][]scenario{"franz": franzScenarios, "sarama": saramaScenarios, "dropped": droppedScenarios, "registry": registryScenarios}
	if len(os.Args) < 4 || (clients[os.Args[1]] == nil && os.Args[1] != "follow") {
		fmt.Fprintln(os.Stderr, "usage: interop franz|sarama|dropped|registry HOST:PORT PREFIX [SCENARIO...]")
		os.Exit(2)
	}
	if os.Args[1] == "follow" && len(os.Args) == 5 {
		if err := follow(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	var err error
	if secured, err = securityFromEnvironment(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	wanted := os.Args[4:]
	for _, each := range clients[os.Args[1]] {
		if len(wanted) > 0 && !slices.Contains(wanted, each.name) {
			continue
		}
		if err := each.run(os.Args[2], os.Args[3]+"-"+each.name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", each.name, err)
			os.Exit(1)
		}
		fmt.Println("ok", each.name)
	}
}
