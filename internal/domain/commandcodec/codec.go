// Package commandcodec encodes commands for the way from the node that received them to the leader, and encodes answers for the way back and for
// storage.
//
// A command is a CBOR array: the name of its type, and a map of its non-zero fields. An answer is a map of the fields that execution has changed.
// Fields are found by name and unknown ones are skipped, so that nodes of two releases understand each other. Not encoded are unexported fields,
// fields with the tag cbor:"-", and zero fields of nested structs.
package commandcodec

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/musterhq/muster/internal/domain/kernel"
)

// Asked is an encoded command.
type Asked []byte

// Form is a command in its state before execution. It implements answers.Form.
type Form struct {
	asked  Asked
	typ    reflect.Type      // one of byName
	fields []cbor.RawMessage // in the order of the type's plan; nil: zero
}

// Travels reports whether other nodes may send a command of this type.
func Travels(cmd kernel.Command) bool { return byName[nameOf(reflect.TypeOf(cmd))] != nil }

// Encode returns the form of a command that is to be sent.
func Encode(cmd kernel.Command) (*Form, error) {
	v, b := value(cmd), newBuffer()
	defer b.release()
	typ := byName[nameOf(v.Type())]
	if typ == nil {
		return nil, fmt.Errorf("%T is not a command that travels", cmd)
	}
	p := planOf(v.Type())
	ends, err := p.encode(b, v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", cmd, err)
	}
	f := &Form{asked: bytes.Clone(b.Bytes()), typ: typ, fields: make([]cbor.RawMessage, len(p.fields))}
	for n, at := range ends {
		if at.to != 0 {
			f.fields[n] = cbor.RawMessage(f.asked[at.from:at.to:at.to])
		}
	}
	return f, nil
}

// Parse returns the form of a received command.
func (a Asked) Parse() (*Form, error) {
	var x struct {
		_      struct{} `cbor:",toarray"`
		Name   string
		Fields map[string]cbor.RawMessage
	}
	if err := decoding.Unmarshal(a, &x); err != nil {
		return nil, fmt.Errorf("decode a command: %w", err)
	}
	typ := byName[x.Name]
	if typ == nil {
		return nil, fmt.Errorf("decode a command: %q is unknown here: written by a later release", x.Name)
	}
	p := planOf(indirect(typ))
	f := &Form{asked: a, typ: typ, fields: make([]cbor.RawMessage, len(p.fields))}
	for n := range p.fields {
		f.fields[n] = x.Fields[p.fields[n].name]
	}
	return f, nil
}

// Asked returns the encoded command.
func (f *Form) Asked() Asked { return f.asked }

// Command returns a new copy of the command as it was sent. It shares no memory with the form.
func (f *Form) Command() (kernel.Command, error) {
	made := reflect.New(indirect(f.typ))
	if err := planOf(made.Type().Elem()).decode(made.Elem(), f.fields); err != nil {
		return nil, fmt.Errorf("decode %v: %w", indirect(f.typ), err)
	}
	if f.typ.Kind() != reflect.Pointer {
		made = made.Elem()
	}
	return made.Interface().(kernel.Command), nil
}

// Answer returns what execution has changed in the command.
func (f *Form) Answer(cmd kernel.Command) ([]byte, error) {
	v, b := value(cmd), newBuffer()
	defer b.release()
	n, err := planOf(v.Type()).encodeChanged(b, v, f.fields)
	if err != nil {
		return nil, fmt.Errorf("encode the answer of %T: %w", cmd, err)
	}
	return append(appendHead(make([]byte, 0, headMax+b.Len()), aMap, uint64(n)), b.Bytes()...), nil
}

// Fill sets the fields that an answer names, and resets all others to their original values. It does not modify memory to which the command's fields
// point.
func (f *Form) Fill(cmd kernel.Command, answer []byte) error {
	var changed map[string]cbor.RawMessage
	if err := decoding.Unmarshal(answer, &changed); err != nil {
		return fmt.Errorf("decode the answer of %T: %w", cmd, err)
	}
	v := value(cmd)
	if err := planOf(v.Type()).fill(v, f.fields, changed); err != nil {
		return fmt.Errorf("decode the answer of %T: %w", cmd, err)
	}
	return nil
}

// Reset restores the command's original values.
func (f *Form) Reset(cmd kernel.Command) error { return f.Fill(cmd, emptyAnswer) }

var emptyAnswer = []byte{0xa0} // an empty map

// Texts of clients need not be valid UTF-8.
var (
	library  = must(cbor.EncOptions{}.UserBufferEncMode())
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
