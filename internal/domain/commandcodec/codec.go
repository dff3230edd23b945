// Package commandcodec gives commands the form in which they travel from the node that received them to the node that decides, and gives
// answers the form in which they travel back and are remembered.
//
// A command is a CBOR array: the name of its type, and a map of its fields that are not zero. An answer is a map of the fields that execution
// has changed. Fields are found by name and unknown ones are skipped, so that nodes of two releases understand each other. Fields that are not exported, or
// have the tag cbor:"-", stay at home.
package commandcodec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"github.com/musterhq/muster/internal/domain/kernel"
)

// Asked is the form of a command, as it was before it was executed. It implements answers.Form.
type Asked []byte

// Travels reports whether other nodes may give a command of this type.
func Travels(cmd kernel.Command) bool { return byName[nameOf(reflect.TypeOf(cmd))] != nil }

// Encode returns the form of a command that travels.
func Encode(cmd kernel.Command) (Asked, error) {
	v := value(cmd)
	if !Travels(cmd) {
		return nil, fmt.Errorf("%T is not a command that travels", cmd)
	}
	fields, err := encodeFields(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", cmd, err)
	}
	return encoding.Marshal(form{Name: nameOf(v.Type()), Fields: fields})
}

// Command returns the command of a form. The command is new: it shares no memory with the form.
func (a Asked) Command() (kernel.Command, error) {
	var f form
	if err := decoding.Unmarshal(a, &f); err != nil {
		return nil, fmt.Errorf("decode a command: %w", err)
	}
	t := byName[f.Name]
	if t == nil {
		return nil, fmt.Errorf("decode a command: %q is unknown here: written by a later release", f.Name)
	}
	made := reflect.New(indirect(t))
	if err := decodeFields(made.Elem(), f.Fields); err != nil {
		return nil, fmt.Errorf("decode %s: %w", f.Name, err)
	}
	if t.Kind() != reflect.Pointer {
		made = made.Elem()
	}
	return made.Interface().(kernel.Command), nil
}

// Answer returns what execution has changed in the command.
func (a Asked) Answer(cmd kernel.Command) ([]byte, error) {
	var f form
	if err := decoding.Unmarshal(a, &f); err != nil {
		return nil, fmt.Errorf("decode a command: %w", err)
	}
	changed, err := answerFields(value(cmd), f.Fields)
	if err != nil {
		return nil, fmt.Errorf("encode the answer of %T: %w", cmd, err)
	}
	return encoding.Marshal(changed)
}

// Fill sets the fields that an answer names, and resets all others to what was asked. Memory that the command's fields point to stays as it is.
func (a Asked) Fill(cmd kernel.Command, answer []byte) error {
	var f form
	if err := decoding.Unmarshal(a, &f); err != nil {
		return fmt.Errorf("decode a command: %w", err)
	}
	var changed fields
	if err := decoding.Unmarshal(answer, &changed); err != nil {
		return fmt.Errorf("decode the answer of %T: %w", cmd, err)
	}
	if err := fillFields(value(cmd), f.Fields, changed); err != nil {
		return fmt.Errorf("decode the answer of %T: %w", cmd, err)
	}
	return nil
}

// Reset makes the command what it was when it was asked.
func (a Asked) Reset(cmd kernel.Command) error { return a.Fill(cmd, emptyAnswer) }

var emptyAnswer = []byte{0xa0} // an empty map

// form is a command as it travels.
type form struct {
	_      struct{} `cbor:",toarray"`
	Name   string
	Fields fields
}

type fields map[string]cbor.RawMessage

// Texts of clients need not be valid UTF-8.
var (
	encoding = must(cbor.EncOptions{}.EncMode())
	decoding = must(cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: 1 << 24, MaxMapPairs: 1 << 24}.DecMode())
)

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func value(cmd kernel.Command) reflect.Value { return reflect.Indirect(reflect.ValueOf(cmd)) }

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func nameOf(t reflect.Type) string { return indirect(t).String() }

var null = []byte{0xf6}

var aCommand = reflect.TypeFor[kernel.Command]()

// travelling are the numbers of the fields of a type that travel.
func travelling(t reflect.Type) []int {
	if known, ok := travellingOf.Load(t); ok {
		return known.([]int)
	}
	var all []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && !strings.HasPrefix(f.Tag.Get("cbor"), "-") {
			all = append(all, i)
		}
	}
	travellingOf.Store(t, all)
	return all
}

var travellingOf sync.Map

func encodeFields(v reflect.Value) (fields, error) {
	all := fields{}
	for _, i := range travelling(v.Type()) {
		if v.Field(i).IsZero() {
			continue
		}
		b, err := encodeField(v.Field(i))
		if err != nil {
			return nil, err
		}
		all[v.Type().Field(i).Name] = b
	}
	return all, nil
}

// encodeField encodes a field, which may be the command that this one wraps.
func encodeField(v reflect.Value) (cbor.RawMessage, error) {
	if v.Type() == aCommand {
		asked, err := Encode(v.Interface().(kernel.Command))
		return cbor.RawMessage(asked), err
	}
	return encodeValue(v)
}

// encodeValue writes what a pointer to a slice or a map points to in an array of its own: to set none, and to set nothing, are different changes of a
// record, and CBOR has one null for both.
func encodeValue(v reflect.Value) (cbor.RawMessage, error) {
	if boxed(v.Type()) && !v.IsNil() {
		return encoding.Marshal([1]any{v.Elem().Interface()})
	}
	return encoding.Marshal(v.Interface())
}

func boxed(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && (t.Elem().Kind() == reflect.Slice || t.Elem().Kind() == reflect.Map)
}

func answerFields(v reflect.Value, asked fields) (fields, error) {
	changed := fields{}
	for _, i := range travelling(v.Type()) {
		x, name := v.Field(i), v.Type().Field(i).Name
		was := asked[name]
		if x.IsZero() && was == nil {
			continue
		}
		var now cbor.RawMessage
		var err error
		if x.Type() == aCommand {
			now, err = Asked(was).Answer(x.Interface().(kernel.Command))
		} else if now, err = encodeValue(x); bytes.Equal(now, was) {
			continue
		}
		if err != nil {
			return nil, err
		}
		changed[name] = now
	}
	return changed, nil
}

func decodeFields(v reflect.Value, all fields) error {
	for _, i := range travelling(v.Type()) {
		b, ok := all[v.Type().Field(i).Name]
		if !ok {
			continue
		}
		if err := decodeField(v.Field(i), b); err != nil {
			return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
		}
	}
	return nil
}

// fillFields sets each field to what an answer says, or else to what was asked.
func fillFields(v reflect.Value, asked, changed fields) error {
	for _, i := range travelling(v.Type()) {
		x, name := v.Field(i), v.Type().Field(i).Name
		b, ok := changed[name]
		if x.Type() == aCommand {
			if !ok {
				b = emptyAnswer
			}
			if err := Asked(asked[name]).Fill(x.Interface().(kernel.Command), b); err != nil {
				return err
			}
			continue
		}
		if !x.CanSet() && !ok {
			continue // of a command that is passed by value: it is as it was
		}
		if !ok {
			b, ok = asked[name]
		}
		if !ok {
			x.SetZero()
		} else if err := decodeField(x, b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func decodeField(v reflect.Value, b cbor.RawMessage) error {
	if v.Type() == aCommand {
		cmd, err := Asked(b).Command()
		if err == nil {
			v.Set(reflect.ValueOf(cmd))
		}
		return err
	}
	if !v.CanSet() {
		return errors.New("it is in a command that is passed by value, and cannot change")
	}
	t := v.Type()
	if boxed(t) && !bytes.Equal(b, null) {
		t = reflect.ArrayOf(1, t.Elem())
	}
	fresh := reflect.New(t) // decoding into the present value would write into slices and maps that others may share
	if err := decoding.Unmarshal(b, fresh.Interface()); err != nil {
		return err
	}
	if t != v.Type() {
		v.Set(fresh.Elem().Index(0).Addr())
		return nil
	}
	v.Set(fresh.Elem())
	return nil
}
