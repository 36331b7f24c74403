package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	avroOrder = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	avroWider = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string","default":""}]}`
	avroOther = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}`
	avroWhole = `{"type":"record","name":"Whole","fields":[{"name":"order","type":"Order"}]}`
	protoText = "syntax = \"proto3\";\n\nmessage Order {\n  int64 id = 1;\n}\n"
)

// registryScenarios test a schema registry with franz-go's client; "bootstrap" is the URL of the registry.
var registryScenarios = []scenario{
	{"register", withRegistry(registryRegister)},
	{"read", withRegistry(registryRead)},
	{"references", withRegistry(registryReferences)},
	{"compatibility", withRegistry(registryCompatibility)},
	{"modes", withRegistry(registryModes)},
	{"contexts", withRegistry(registryContexts)},
	{"delete", withRegistry(registryDelete)},
	{"serde", withRegistry(registrySerde)},
}

func withRegistry(run func(ctx context.Context, client *sr.Client, subject string) error) func(url, prefix string) error {
	return func(url, prefix string) error {
		ctx, cancel := franzContext()
		defer cancel()
		client, err := sr.NewClient(sr.URLs(url))
		if err != nil {
			return err
		}
		return run(ctx, client, prefix)
	}
}

func expectCode(err error, code int) error {
	var refused *sr.ResponseError
	if !errors.As(err, &refused) || refused.ErrorCode != code {
		return fmt.Errorf("error %v where code %d was expected", err, code)
	}
	return nil
}

func registryRegister(ctx context.Context, client *sr.Client, subject string) error {
	for number, schema := range []sr.Schema{
		{Schema: avroOrder},
		{Schema: `{"type":"object"}`, Type: sr.TypeJSON},
		{Schema: protoText, Type: sr.TypeProtobuf},
	} {
		name := fmt.Sprintf("%s-%d", subject, number)
		made, err := client.CreateSchema(ctx, name, schema)
		if err != nil {
			return err
		}
		again, err := client.CreateSchema(ctx, name, schema)
		if err != nil {
			return err
		}
		found, err := client.LookupSchema(ctx, name, schema)
		if err != nil {
			return err
		}
		if made.ID != again.ID || made.ID != found.ID || made.Version != 1 || found.Type != schema.Type {
			return fmt.Errorf("%v, %v and %v differ", made, again, found)
		}
	}
	_, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: "{"})
	return expectCode(err, 42201)
}

func registryRead(ctx context.Context, client *sr.Client, subject string) error {
	made, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: avroOrder})
	if err != nil {
		return err
	}
	byID, err := client.SchemaByID(ctx, made.ID)
	if err != nil {
		return err
	}
	text, err := client.SchemaTextByID(ctx, made.ID)
	if err != nil {
		return err
	}
	latest, err := client.SchemaByVersion(ctx, subject, -1)
	if err != nil {
		return err
	}
	subjects, err := client.SubjectsByID(ctx, made.ID)
	if err != nil {
		return err
	}
	all, err := client.AllSchemas(ctx)
	if err != nil {
		return err
	}
	if byID.Schema != avroOrder || text != avroOrder || latest.Schema.Schema != avroOrder || !slices.Contains(subjects, subject) || len(all) == 0 {
		return fmt.Errorf("read %v, %q, %v, %v", byID, text, latest, subjects)
	}
	types, err := client.SupportedTypes(ctx)
	if err != nil || len(types) != 3 {
		return fmt.Errorf("types %v: %w", types, err)
	}
	_, err = client.SchemaByVersion(ctx, subject, 9)
	return expectCode(err, 40402)
}

func registryReferences(ctx context.Context, client *sr.Client, subject string) error {
	if _, err := client.CreateSchema(ctx, subject+"-base", sr.Schema{Schema: avroOrder}); err != nil {
		return err
	}
	references := []sr.SchemaReference{{Name: "Order", Subject: subject + "-base", Version: 1}}
	whole, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: avroWhole, References: references})
	if err != nil {
		return err
	}
	users, err := client.SchemaReferences(ctx, subject+"-base", 1)
	if err != nil || len(users) != 1 || users[0].ID != whole.ID {
		return fmt.Errorf("users %v: %w", users, err)
	}
	return expectCode(client.DeleteSchema(ctx, subject+"-base", 1, sr.SoftDelete), 42206)
}

func registryCompatibility(ctx context.Context, client *sr.Client, subject string) error {
	if _, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: avroOrder}); err != nil {
		return err
	}
	for text, expected := range map[string]bool{avroWider: true, avroOther: false} {
		checked, err := client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, -1, sr.Schema{Schema: text})
		if err != nil || checked.Is != expected || (len(checked.Messages) == 0) != expected {
			return fmt.Errorf("%v for %s: %w", checked, text, err)
		}
	}
	_, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: avroOther})
	if err := expectCode(err, 40901); err != nil {
		return err
	}
	set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatNone}, subject)
	got := client.Compatibility(ctx, subject)
	if set[0].Err != nil || got[0].Err != nil || got[0].Level != sr.CompatNone {
		return fmt.Errorf("set %v, got %v", set, got)
	}
	if _, err = client.CreateSchema(ctx, subject, sr.Schema{Schema: avroOther}); err != nil {
		return err
	}
	return client.ResetCompatibility(ctx, subject)[0].Err
}

func registryModes(ctx context.Context, client *sr.Client, subject string) error {
	if set := client.SetMode(ctx, sr.ModeImport, subject); set[0].Err != nil {
		return set[0].Err
	}
	made, err := client.CreateSchemaWithIDAndVersion(ctx, subject, sr.Schema{Schema: `{"type":"fixed","name":"Unique","size":77}`}, 770077, 5)
	if err != nil || made.ID != 770077 || made.Version != 5 {
		return fmt.Errorf("imported %v: %w", made, err)
	}
	if set := client.SetMode(ctx, sr.ModeReadOnly, subject); set[0].Err != nil {
		return set[0].Err
	}
	_, err = client.CreateSchema(ctx, subject, sr.Schema{Schema: avroOrder})
	if err := expectCode(err, 42205); err != nil {
		return err
	}
	return client.ResetMode(ctx, subject)[0].Err
}

func registryContexts(ctx context.Context, client *sr.Client, subject string) error {
	inside := sr.InContext(ctx, ".interop")
	made, err := client.CreateSchema(inside, subject, sr.Schema{Schema: avroOrder})
	if err != nil {
		return err
	}
	contexts, err := client.Contexts(ctx)
	if err != nil || !slices.Contains(contexts, ".interop") {
		return fmt.Errorf("contexts %v: %w", contexts, err)
	}
	found, err := client.SchemaByID(inside, made.ID)
	if err != nil || found.Schema != avroOrder {
		return fmt.Errorf("found %v: %w", found, err)
	}
	return nil
}

func registryDelete(ctx context.Context, client *sr.Client, subject string) error {
	for _, text := range []string{avroOrder, avroWider} {
		if _, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: text}); err != nil {
			return err
		}
	}
	if err := client.DeleteSchema(ctx, subject, 1, sr.SoftDelete); err != nil {
		return err
	}
	versions, err := client.SubjectVersions(sr.WithParams(ctx, sr.ShowDeleted), subject)
	if err != nil || !slices.Equal(versions, []int{1, 2}) {
		return fmt.Errorf("versions %v: %w", versions, err)
	}
	if err := client.DeleteSchema(ctx, subject, 1, sr.HardDelete); err != nil {
		return err
	}
	if _, err := client.DeleteSubject(ctx, subject, sr.SoftDelete); err != nil {
		return err
	}
	if _, err := client.DeleteSubject(ctx, subject, sr.HardDelete); err != nil {
		return err
	}
	_, err = client.SubjectVersions(ctx, subject)
	return expectCode(err, 40401)
}

func registrySerde(ctx context.Context, client *sr.Client, subject string) error {
	type order struct {
		ID int64 `json:"id"`
	}
	made, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: `{"type":"object","properties":{"id":{"type":"integer"}}}`, Type: sr.TypeJSON})
	if err != nil {
		return err
	}
	var serde sr.Serde
	serde.Register(made.ID, order{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	value, err := serde.Encode(order{7})
	if err != nil {
		return err
	}
	id, _, err := serde.DecodeID(value)
	if err != nil || id != made.ID {
		return fmt.Errorf("id %d: %w", id, err)
	}
	var read order
	if err := serde.Decode(value, &read); err != nil || read.ID != 7 {
		return fmt.Errorf("read %v: %w", read, err)
	}
	return nil
}
