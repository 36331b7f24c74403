package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var franzScenarios = []scenario{
	{"codec-none", franzCodec(kgo.NoCompression())},
	{"codec-gzip", franzCodec(kgo.GzipCompression())},
	{"codec-snappy", franzCodec(kgo.SnappyCompression())},
	{"codec-lz4", franzCodec(kgo.Lz4Compression())},
	{"codec-zstd", franzCodec(kgo.ZstdCompression())},
	{"not-idempotent", franzNotIdempotent},
	{"megabytes", franzMegabytes},
	{"by-time", franzByTime},
	{"rebalance", franzRebalance},
	{"consumer-protocol", franzConsumerProtocol},
	{"admin", franzAdmin},
}

func franzContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// franzTopic creates a topic, and a client with the options.
func franzTopic(ctx context.Context, bootstrap, topic string, partitions int32, options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, kgo.SeedBrokers(bootstrap), kgo.ProducerBatchMaxBytes(1_900_000), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	client, err := kgo.NewClient(append(options, secured.franz()...)...)
	if err != nil {
		return nil, err
	}
	if partitions > 0 {
		_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, 1, nil, topic)
	}
	return client, err
}

func franzRecords(topic string) []*kgo.Record {
	var records []*kgo.Record
	for _, each := range messages() {
		record := &kgo.Record{Topic: topic, Key: each.key, Value: each.value, Timestamp: time.UnixMilli(each.time)}
		if each.header != "" {
			record.Headers = []kgo.RecordHeader{{Key: "name", Value: []byte(each.header)}}
		}
		records = append(records, record)
	}
	return records
}

func franzRead(ctx context.Context, client *kgo.Client, count int) ([]*kgo.Record, error) {
	var found []*kgo.Record
	for len(found) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		found = append(found, fetches.Records()...)
	}
	return found, nil
}

func franzRoundTrip(bootstrap, topic string, options ...kgo.Opt) error {
	ctx, cancel := franzContext()
	defer cancel()
	client, err := franzTopic(ctx, bootstrap, topic, 1, append(options, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, franzRecords(topic)...).FirstErr(); err != nil {
		return err
	}
	found, err := franzRead(ctx, client, len(messages()))
	if err != nil {
		return err
	}
	for index, sent := range messages() {
		header := ""
		if len(found[index].Headers) > 0 {
			header = string(found[index].Headers[0].Value)
		}
		if err := same(sent, found[index].Key, found[index].Value, header, found[index].Timestamp.UnixMilli()); err != nil {
			return err
		}
	}
	return client.CommitUncommittedOffsets(ctx)
}

func franzCodec(codec kgo.CompressionCodec) func(bootstrap, topic string) error {
	return func(bootstrap, topic string) error {
		return franzRoundTrip(bootstrap, topic, kgo.ProducerBatchCompression(codec))
	}
}

func franzNotIdempotent(bootstrap, topic string) error {
	return franzRoundTrip(bootstrap, topic, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
}

// franzConsumerProtocol reads in a group that the broker balances (KIP-848); a second member gets its share.
func franzConsumerProtocol(bootstrap, topic string) error {
	ctx, cancel := franzContext()
	defer cancel()
	options := []kgo.Opt{kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic), kgo.ServerSideBalancer()}
	first, err := franzTopic(ctx, bootstrap, topic, 2, options...)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := franzTopic(ctx, bootstrap, topic, 0, options...)
	if err != nil {
		return err
	}
	defer second.Close()
	for partition := int32(0); partition < 2; partition++ {
		record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte("v")}
		if err := first.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	if _, err := franzRead(ctx, first, 1); err != nil {
		return err
	}
	groups, err := kadm.NewClient(first).ListGroupsByType(ctx, []string{"consumer"})
	if err != nil {
		return err
	}
	if _, found := groups[topic]; !found {
		return fmt.Errorf("the group is not of the consumer protocol: %v", groups)
	}
	return first.CommitUncommittedOffsets(ctx)
}

func franzMegabytes(bootstrap, topic string) error {
	ctx, cancel := franzContext()
	defer cancel()
	client, err := franzTopic(ctx, bootstrap, topic, 1, kgo.ConsumeTopics(topic), kgo.FetchMaxBytes(100_000), kgo.FetchMaxPartitionBytes(100_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	value := make([]byte, 1<<20)
	for range 3 {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
			return err
		}
	}
	found, err := franzRead(ctx, client, 3)
	if err != nil {
		return err
	}
	for _, each := range found {
		if len(each.Value) != len(value) {
			return fmt.Errorf("%d bytes", len(each.Value))
		}
	}
	return nil
}

func franzByTime(bootstrap, topic string) error {
	ctx, cancel := franzContext()
	defer cancel()
	producer, err := franzTopic(ctx, bootstrap, topic, 1)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.ProduceSync(ctx, franzRecords(topic)...).FirstErr(); err != nil {
		return err
	}
	start := kgo.NewOffset().AfterMilli(baseTime + 7000)
	client, err := franzTopic(ctx, bootstrap, topic, 0, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(start))
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := franzRead(ctx, client, len(messages())-7)
	if err != nil {
		return err
	}
	if found[0].Offset != 7 {
		return fmt.Errorf("started at %d", found[0].Offset)
	}
	return nil
}

// franzRebalance lets two members share four partitions; when one leaves, the other takes all.
func franzRebalance(bootstrap, topic string) error {
	ctx, cancel := franzContext()
	defer cancel()
	admin, err := franzTopic(ctx, bootstrap, topic, 4)
	if err != nil {
		return err
	}
	defer admin.Close()
	member := func() (*kgo.Client, error) {
		return franzTopic(ctx, bootstrap, topic, 0, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic), kgo.HeartbeatInterval(200*time.Millisecond))
	}
	first, err := member()
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := member()
	if err != nil {
		return err
	}
	if err := franzShares(ctx, admin, topic, 2, 2); err != nil {
		second.Close()
		return err
	}
	second.Close()
	return franzShares(ctx, admin, topic, 4)
}

func franzShares(ctx context.Context, admin *kgo.Client, group string, wanted ...int) error {
	for ctx.Err() == nil {
		described, err := kadm.NewClient(admin).DescribeGroups(ctx, group)
		if err != nil {
			return err
		}
		var shares []int
		for _, member := range described[group].Members {
			if assigned, ok := member.Assigned.AsConsumer(); ok && len(assigned.Topics) > 0 {
				shares = append(shares, len(assigned.Topics[0].Partitions))
			}
		}
		if described[group].State == "Stable" && fmt.Sprint(shares) == fmt.Sprint(wanted) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the group did not come to rest")
}

func franzAdmin(bootstrap, topic string) error {
	ctx, cancel := franzContext()
	defer cancel()
	client, err := franzTopic(ctx, bootstrap, topic, 2)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if err := client.ProduceSync(ctx, franzRecords(topic)...).FirstErr(); err != nil {
		return err
	}
	value := "5000"
	if _, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, topic); err != nil {
		return err
	}
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil || len(configs) != 1 || len(configs[0].Configs) < 20 {
		return fmt.Errorf("configs %v: %w", configs, err)
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	if end, _ := ends.Lookup(topic, 0); end.Offset != int64(len(messages())) {
		return fmt.Errorf("end offset %d", end.Offset)
	}
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 5, LeaderEpoch: -1, Metadata: "note"})
	if err := admin.CommitAllOffsets(ctx, topic, offsets); err != nil {
		return err
	}
	committed, err := admin.FetchOffsets(ctx, topic)
	if err != nil {
		return err
	}
	if found, _ := committed.Lookup(topic, 0); found.At != 5 || found.Metadata != "note" {
		return fmt.Errorf("committed %+v", found)
	}
	if _, err := admin.CreatePartitions(ctx, 1, topic); err != nil {
		return err
	}
	if deleted, err := admin.DeleteGroups(ctx, topic); err != nil || deleted.Error() != nil {
		return errors.Join(err, deleted.Error())
	}
	deleted, err := admin.DeleteTopics(ctx, topic)
	return errors.Join(err, deleted.Error())
}
