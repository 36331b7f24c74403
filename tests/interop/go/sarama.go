package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

var saramaScenarios = []scenario{
	{"codec-none", saramaCodec(sarama.CompressionNone)},
	{"codec-gzip", saramaCodec(sarama.CompressionGZIP)},
	{"codec-snappy", saramaCodec(sarama.CompressionSnappy)},
	{"codec-lz4", saramaCodec(sarama.CompressionLZ4)},
	{"codec-zstd", saramaCodec(sarama.CompressionZSTD)},
	{"idempotent", saramaIdempotent},
	{"old-version", saramaOld},
	{"megabytes", saramaMegabytes},
	{"by-time", saramaByTime},
	{"rebalance", saramaRebalance},
	{"admin", saramaAdmin},
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.MaxMessageBytes = 1_900_000
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	secured.sarama(config)
	return config
}

func saramaCreate(bootstrap, topic string, partitions int32) (sarama.ClusterAdmin, error) {
	admin, err := sarama.NewClusterAdmin([]string{bootstrap}, saramaConfig())
	if err != nil {
		return nil, err
	}
	return admin, admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
}

func saramaProduce(bootstrap string, config *sarama.Config, produced ...*sarama.ProducerMessage) error {
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	if err != nil {
		return err
	}
	return errors.Join(producer.SendMessages(produced), producer.Close())
}

func saramaMessages(topic string) []*sarama.ProducerMessage {
	var all []*sarama.ProducerMessage
	for _, each := range messages() {
		made := &sarama.ProducerMessage{Topic: topic, Timestamp: time.UnixMilli(each.time)}
		if each.key != nil {
			made.Key = sarama.ByteEncoder(each.key)
		}
		if each.value != nil {
			made.Value = sarama.ByteEncoder(each.value)
		}
		if each.header != "" {
			made.Headers = []sarama.RecordHeader{{Key: []byte("name"), Value: []byte(each.header)}}
		}
		all = append(all, made)
	}
	return all
}

func saramaRead(bootstrap, topic string, config *sarama.Config, offset int64, count int) ([]*sarama.ConsumerMessage, error) {
	consumer, err := sarama.NewConsumer([]string{bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, offset)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	var found []*sarama.ConsumerMessage
	for deadline := time.After(patience); len(found) < count; {
		select {
		case each := <-partition.Messages():
			found = append(found, each)
		case err := <-partition.Errors():
			return nil, err
		case <-deadline:
			return nil, fmt.Errorf("%d messages of %d", len(found), count)
		}
	}
	return found, nil
}

func saramaRoundTrip(bootstrap, topic string, config *sarama.Config) error {
	admin, err := saramaCreate(bootstrap, topic, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := saramaProduce(bootstrap, config, saramaMessages(topic)...); err != nil {
		return err
	}
	found, err := saramaRead(bootstrap, topic, config, sarama.OffsetOldest, len(messages()))
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
	return nil
}

func saramaCodec(codec sarama.CompressionCodec) func(bootstrap, topic string) error {
	return func(bootstrap, topic string) error {
		config := saramaConfig()
		config.Producer.Compression = codec
		return saramaRoundTrip(bootstrap, topic, config)
	}
}

func saramaIdempotent(bootstrap, topic string) error {
	config := saramaConfig()
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	return saramaRoundTrip(bootstrap, topic, config)
}

// saramaOld uses the oldest versions that current brokers still accept.
func saramaOld(bootstrap, topic string) error {
	config := saramaConfig()
	config.Version = sarama.V2_1_0_0
	return saramaRoundTrip(bootstrap, topic, config)
}

func saramaMegabytes(bootstrap, topic string) error {
	admin, err := saramaCreate(bootstrap, topic, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	value := make([]byte, 1<<20)
	config := saramaConfig()
	config.Consumer.Fetch.Default = 100_000
	for range 3 {
		if err := saramaProduce(bootstrap, config, &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(value)}); err != nil {
			return err
		}
	}
	found, err := saramaRead(bootstrap, topic, config, sarama.OffsetOldest, 3)
	if err == nil && len(found[2].Value) != len(value) {
		err = fmt.Errorf("%d bytes", len(found[2].Value))
	}
	return err
}

func saramaByTime(bootstrap, topic string) error {
	if err := saramaRoundTrip(bootstrap, topic, saramaConfig()); err != nil {
		return err
	}
	client, err := sarama.NewClient([]string{bootstrap}, saramaConfig())
	if err != nil {
		return err
	}
	defer client.Close()
	offset, err := client.GetOffset(topic, 0, baseTime+6500)
	if err == nil && offset != 7 {
		err = fmt.Errorf("offset %d", offset)
	}
	return err
}

// saramaMember reports the number of partitions in its assignment.
type saramaMember struct{ shares chan int }

func (member saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	count := 0
	for _, partitions := range session.Claims() {
		count += len(partitions)
	}
	member.shares <- count
	return nil
}

func (member saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (member saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for each := range claim.Messages() {
		session.MarkMessage(each, "")
	}
	return nil
}

func saramaJoin(ctx context.Context, bootstrap, topic string, config *sarama.Config) (sarama.ConsumerGroup, saramaMember, error) {
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, topic, config)
	member := saramaMember{shares: make(chan int, 100)}
	if err != nil {
		return nil, member, err
	}
	go func() {
		for ctx.Err() == nil {
			if group.Consume(ctx, []string{topic}, member) != nil {
				return
			}
		}
	}()
	return group, member, nil
}

func (member saramaMember) waitFor(share int) error {
	for deadline := time.After(patience); ; {
		select {
		case found := <-member.shares:
			if found == share {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("never had %d partitions", share)
		}
	}
}

func saramaRebalance(bootstrap, topic string) error {
	return saramaRebalanceWith(bootstrap, topic, saramaConfig())
}

func saramaRebalanceWith(bootstrap, topic string, config *sarama.Config) error {
	admin, err := saramaCreate(bootstrap, topic, 4)
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	group, first, err := saramaJoin(ctx, bootstrap, topic, config)
	if err != nil {
		return err
	}
	defer group.Close()
	if err := first.waitFor(4); err != nil {
		return err
	}
	leaving, leave := context.WithCancel(ctx)
	other, second, err := saramaJoin(leaving, bootstrap, topic, config)
	if err != nil {
		leave()
		return err
	}
	err = errors.Join(second.waitFor(2), first.waitFor(2))
	leave()
	return errors.Join(err, other.Close(), first.waitFor(4))
}

func saramaAdmin(bootstrap, topic string) error {
	admin, err := saramaCreate(bootstrap, topic, 2)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := admin.CreatePartitions(topic, 3, nil, false); err != nil {
		return err
	}
	value := "5000"
	entries := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}
	if err := admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false); err != nil {
		return err
	}
	found, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"segment.bytes"}})
	if err != nil || len(found) != 1 {
		return fmt.Errorf("configs %v: %w", found, err)
	}
	if err := saramaProduce(bootstrap, saramaConfig(), saramaMessages(topic)...); err != nil {
		return err
	}
	if err := admin.DeleteRecords(topic, map[int32]int64{0: 5}); err != nil {
		return err
	}
	if _, _, err := admin.DescribeCluster(); err != nil {
		return err
	}
	if _, err := admin.ListConsumerGroups(); err != nil {
		return err
	}
	return admin.DeleteTopic(topic)
}
