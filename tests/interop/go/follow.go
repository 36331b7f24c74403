package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// follow prints partition, offset and value of each record of a topic, and commits in a group, until it is ended.
func follow(bootstrap, topic, group string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumeTopics(topic),
		kgo.ConsumerGroup(group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.MetadataMinAge(500*time.Millisecond),
		kgo.MetadataMaxAge(2*time.Second),
	)
	if err != nil {
		return err
	}
	for {
		fetches := client.PollFetches(context.Background())
		isAnother := false
		fetches.EachError(func(_ string, _ int32, err error) {
			fmt.Fprintln(os.Stderr, err)
			isAnother = isAnother || errors.Is(err, kerr.UnknownTopicID)
		})
		if isAnother { // the ids of topics differ between the sites; the client takes another one only for a topic that it begins with
			client.PurgeTopicsFromConsuming(topic)
			client.AddConsumeTopics(topic)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(record.Partition, record.Offset, string(record.Value))
		})
		ending, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		if err := client.CommitUncommittedOffsets(ending); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		cancel()
	}
}
