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

// plan describes how to encode commands of a type. It is worth caching, because the leader encodes its own commands, too.
type plan struct {
	head   []byte // head of the form: an array of two, and the name
	fields []field
}

type field struct {
	index   int // in the struct
	name    string
	key     []byte // the name in CBOR
	command bool   // it is the wrapped command
	boxed   bool
	write   writer // for its type, or for what it points to if boxed
}

var plans sync.Map // by type

func planOf(t reflect.Type) *plan {
	if known, ok := plans.Load(t); ok {
		return known.(*plan)
	}
	p := &plan{head: appendText(appendHead(nil, anArray, 2), nameOf(t))}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && !strings.HasPrefix(f.Tag.Get("cbor"), "-") {
			x := field{index: i, name: f.Name, key: appendText(nil, f.Name), command: f.Type == aCommand, boxed: boxed(f.Type)}
			if x.boxed {
				x.write = writerOf(f.Type.Elem())
			} else {
				x.write = writerOf(f.Type)
			}
			p.fields = append(p.fields, x)
		}
	}
	plans.Store(t, p)
	return p
}

// buffer is memory for writing a form or an answer.
type buffer struct{ bytes.Buffer }

var buffers = sync.Pool{New: func() any { return &buffer{} }}

func newBuffer() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) release() {
	if b.Cap() <= 64<<10 { // one large command must not occupy memory forever
		b.Reset()
		buffers.Put(b)
	}
}

// span is the position of a field in a form; zero if the field is absent.
type span struct{ from, to int }

func (p *plan) encode(b *buffer, v reflect.Value) ([]span, error) {
	n := 0
	for i := range p.fields {
		if !v.Field(p.fields[i].index).IsZero() {
			n++
		}
	}
	b.Write(p.head)
	b.head(aMap, uint64(n))
	spans := make([]span, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		x := v.Field(f.index)
		if x.IsZero() {
			continue
		}
		b.Write(f.key)
		spans[i].from = b.Len()
		if err := f.encode(b, x); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		spans[i].to = b.Len()
	}
	return spans, nil
}

// encode writes a field, which may be the wrapped command. The target of a pointer to a slice or a map is put into an array of its own: setting an
// empty list and setting nothing are different changes of a record, but CBOR has only one null for both.
func (f *field) encode(b *buffer, x reflect.Value) error {
	switch {
	case f.command:
		wrapped, err := Encode(x.Interface().(kernel.Command))
		if err == nil {
			b.Write(wrapped.asked)
		}
		return err
	case f.boxed && !x.IsNil():
		b.head(anArray, 1)
		x = x.Elem()
	}
	return f.write(b, x)
}

func boxed(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && (t.Elem().Kind() == reflect.Slice || t.Elem().Kind() == reflect.Map)
}

// encodeChanged writes the fields that differ from the original, and returns their number.
func (p *plan) encodeChanged(b *buffer, v reflect.Value, asked []cbor.RawMessage) (n int, err error) {
	for i := range p.fields {
		f, was := &p.fields[i], asked[i]
		x := v.Field(f.index)
		if x.IsZero() && was == nil {
			continue
		}
		start := b.Len()
		b.Write(f.key)
		at := b.Len()
		if f.command {
			err = answerWrapped(b, was, x)
		} else if err = f.encode(b, x); bytes.Equal(b.Bytes()[at:], was) {
			b.Truncate(start)
			continue
		}
		if err != nil {
			return n, fmt.Errorf("%s: %w", f.name, err)
		}
		n++
	}
	return n, nil
}

func answerWrapped(b *buffer, asked cbor.RawMessage, x reflect.Value) error {
	wrapped, err := Asked(asked).Parse()
	if err != nil {
		return err
	}
	answer, err := wrapped.Answer(x.Interface().(kernel.Command))
	b.Write(answer)
	return err
}

func (p *plan) decode(v reflect.Value, all []cbor.RawMessage) error {
	for i := range p.fields {
		f := &p.fields[i]
		if all[i] == nil {
			continue
		}
		if err := f.decode(v.Field(f.index), all[i]); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// fill sets each field to its value in an answer, or else to its original value.
func (p *plan) fill(v reflect.Value, asked []cbor.RawMessage, changed map[string]cbor.RawMessage) error {
	for i := range p.fields {
		f := &p.fields[i]
		x := v.Field(f.index)
		b, ok := changed[f.name]
		if f.command {
			if !ok {
				b = emptyAnswer
			}
			wrapped, err := Asked(asked[i]).Parse()
			if err == nil {
				err = wrapped.Fill(x.Interface().(kernel.Command), b)
			}
			if err != nil {
				return err
			}
			continue
		}
		if !x.CanSet() && !ok {
			continue // in a command passed by value, it is unchanged
		}
		if !ok {
			b = asked[i]
		}
		if b == nil {
			x.SetZero()
		} else if err := f.decode(x, b); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (f *field) decode(v reflect.Value, b cbor.RawMessage) error {
	if f.command {
		wrapped, err := Asked(b).Parse()
		if err != nil {
			return err
		}
		cmd, err := wrapped.Command()
		if err == nil {
			v.Set(reflect.ValueOf(cmd))
		}
		return err
	}
	if !v.CanSet() {
		return errors.New("it is in a command that is passed by value, and cannot change")
	}
	t := v.Type()
	if f.boxed && !bytes.Equal(b, null) {
		t = reflect.ArrayOf(1, t.Elem())
	}
	fresh := reflect.New(t) // decoding into the current value would write into slices and maps that others may share
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
