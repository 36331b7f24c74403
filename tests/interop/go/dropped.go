package main

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// droppedScenarios use sarama with versions of old brokers; Kafka 4 serves none of these versions.
var droppedScenarios = []scenario{
	{"0.8.2-none", droppedRoundTrip(sarama.V0_8_2_0, sarama.CompressionNone)},
	{"0.8.2-gzip", droppedRoundTrip(sarama.V0_8_2_0, sarama.CompressionGZIP)},
	{"0.8.2-snappy", droppedRoundTrip(sarama.V0_8_2_0, sarama.CompressionSnappy)},
	{"0.10.2-none", droppedRoundTrip(sarama.V0_10_2_0, sarama.CompressionNone)},
	{"0.10.2-gzip", droppedRoundTrip(sarama.V0_10_2_0, sarama.CompressionGZIP)},
	{"0.10.2-snappy", droppedRoundTrip(sarama.V0_10_2_0, sarama.CompressionSnappy)},
	{"0.10.2-lz4", droppedRoundTrip(sarama.V0_10_2_0, sarama.CompressionLZ4)},
	{"0.11-gzip", droppedRoundTrip(sarama.V0_11_0_0, sarama.CompressionGZIP)},
	{"0.8.2-offsets", droppedOffsets(sarama.V0_8_2_0)},
	{"0.10.2-offsets", droppedOffsets(sarama.V0_10_2_0)},
	{"0.8.2-by-time", droppedByTime(sarama.V0_8_2_0)},
	{"0.10.2-by-time", droppedByTime(sarama.V0_10_2_0)},
	{"0.10.2-rebalance", droppedRebalance(sarama.V0_10_2_0)},
	{"0.10.2-admin", droppedAdmin(sarama.V0_10_2_0)},
}

func droppedConfig(version sarama.KafkaVersion) *sarama.Config {
	config := saramaConfig()
	config.Version = version
	return config
}

// droppedTopic creates a topic with a current client, because clients of 0.8 have no request for it.
func droppedTopic(bootstrap, topic string, partitions int32) error {
	admin, err := saramaCreate(bootstrap, topic, partitions)
	if err != nil {
		return err
	}
	return admin.Close()
}

func droppedMessages(topic string, version sarama.KafkaVersion) []*sarama.ProducerMessage {
	all := saramaMessages(topic)
	for _, each := range all {
		if !version.IsAtLeast(sarama.V0_11_0_0) {
			each.Headers = nil
		}
	}
	return all
}

func droppedRoundTrip(version sarama.KafkaVersion, codec sarama.CompressionCodec) func(bootstrap, topic string) error {
	return func(bootstrap, topic string) error {
		if err := droppedTopic(bootstrap, topic, 1); err != nil {
			return err
		}
		config := droppedConfig(version)
		config.Producer.Compression = codec
		if err := saramaProduce(bootstrap, config, droppedMessages(topic, version)...); err != nil {
			return err
		}
		for _, reader := range []*sarama.Config{config, saramaConfig()} {
			if err := droppedRead(bootstrap, topic, reader, version); err != nil {
				return fmt.Errorf("read as %v: %w", reader.Version, err)
			}
		}
		return nil
	}
}

// droppedRead compares the stored messages with those of a client of version `writing`. It skips fields that this version lacks.
func droppedRead(bootstrap, topic string, reader *sarama.Config, writing sarama.KafkaVersion) error {
	found, err := saramaRead(bootstrap, topic, reader, sarama.OffsetOldest, len(messages()))
	if err != nil {
		return err
	}
	for index, sent := range messages() {
		header, milliseconds := "", found[index].Timestamp.UnixMilli()
		if len(found[index].Headers) > 0 {
			header = string(found[index].Headers[0].Value)
		}
		if !writing.IsAtLeast(sarama.V0_11_0_0) {
			sent.header = ""
		}
		if !writing.IsAtLeast(sarama.V0_10_0_0) {
			sent.time = milliseconds
		}
		if err := same(sent, found[index].Key, found[index].Value, header, milliseconds); err != nil {
			return err
		}
	}
	return nil
}

func droppedOffsets(version sarama.KafkaVersion) func(bootstrap, topic string) error {
	return func(bootstrap, topic string) error {
		if err := droppedTopic(bootstrap, topic, 1); err != nil {
			return err
		}
		for _, wanted := range []int64{-2, 7} { // -2: no offset is committed yet
			client, err := sarama.NewClient([]string{bootstrap}, droppedConfig(version))
			if err != nil {
				return err
			}
			err = errors.Join(droppedCommit(client, topic, wanted), client.Close())
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func droppedCommit(client sarama.Client, topic string, wanted int64) error {
	manager, err := sarama.NewOffsetManagerFromClient(topic, client)
	if err != nil {
		return err
	}
	partition, err := manager.ManagePartition(topic, 0)
	if err != nil {
		return errors.Join(err, manager.Close())
	}
	offset, note := partition.NextOffset()
	if offset != wanted {
		err = fmt.Errorf("offset %d where %d was committed", offset, wanted)
	} else if wanted == 7 && note != "a note" {
		err = fmt.Errorf("note %q", note)
	}
	partition.MarkOffset(7, "a note")
	manager.Commit()
	return errors.Join(err, partition.Close(), manager.Close())
}

func droppedByTime(version sarama.KafkaVersion) func(bootstrap, topic string) error {
	return func(bootstrap, topic string) error {
		if err := droppedTopic(bootstrap, topic, 1); err != nil {
			return err
		}
		if err := saramaProduce(bootstrap, droppedConfig(version), droppedMessages(topic, version)...); err != nil {
			return err
		}
		client, err := sarama.NewClient([]string{bootstrap}, droppedConfig(version))
		if err != nil {
			return err
		}
		defer client.Close()
		for moment, wanted := range map[int64]int64{sarama.OffsetOldest: 0, sarama.OffsetNewest: int64(len(messages()))} {
			if offset, err := client.GetOffset(topic, 0, moment); err != nil || offset != wanted {
				return fmt.Errorf("offset %d at %d where %d was meant: %w", offset, moment, wanted, err)
			}
		}
		if version.IsAtLeast(sarama.V0_10_1_0) {
			if offset, err := client.GetOffset(topic, 0, baseTime+6500); err != nil || offset != 7 {
				return fmt.Errorf("offset %d: %w", offset, err)
			}
		}
		return nil
	}
}

func droppedRebalance(version sarama.KafkaVersion) func(bootstrap, topic string) error {
	return func(bootstrap, topic string) error {
		return saramaRebalanceWith(bootstrap, topic, droppedConfig(version))
	}
}

func droppedAdmin(version sarama.KafkaVersion) func(bootstrap, topic string) error {
	return func(bootstrap, topic string) error {
		admin, err := sarama.NewClusterAdmin([]string{bootstrap}, droppedConfig(version))
		if err != nil {
			return err
		}
		defer admin.Close()
		if err := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false); err != nil {
			return err
		}
		topics, err := admin.DescribeTopics([]string{topic})
		if err != nil || len(topics) != 1 || len(topics[0].Partitions) != 2 {
			return fmt.Errorf("topics %v: %w", topics, err)
		}
		if _, err := admin.ListConsumerGroups(); err != nil {
			return err
		}
		return admin.DeleteTopic(topic)
	}
}
