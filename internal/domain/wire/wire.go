// Package wire writes and reads the journal's events and the snapshot's records in protobuf's wire format
// (proto/journal.proto). One function for each message names its fields once and serves both directions:
//
//	func (e *PlayerRemoved) Fields(c *wire.Codec) {
//		c.UUID(1, &e.PlayerSession)
//	}
//
// The usual generated code was three times slower on the hot events; a test holds every message against the schema with
// the protobuf library, in both directions.
package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// Message is something with fields.
type Message interface{ Fields(c *Codec) }

// Codec is either writing (it appends to Buf) or reading (it fills the fields it is asked for). Field numbers have to be
// named in ascending order. Zero values are not written.
type Codec struct {
	Buf     []byte
	reading bool
	fields  []field
	next    int
	err     error
	strings map[string]string
}

type field struct {
	num   uint32
	kind  uint8 // protobuf wire type
	value uint64
	bytes []byte
}

const (
	varint  = 0
	fixed64 = 1
	length  = 2
	fixed32 = 5
)

// ErrMalformed says that bytes are no message of the wire format.
var ErrMalformed = errors.New("malformed protobuf bytes")

// Append writes m behind b.
func Append(b []byte, m Message) []byte {
	c := Codec{Buf: b}
	m.Fields(&c)
	return c.Buf
}

// Reader reads many messages and keeps its scratch space between them.
type Reader struct{ c Codec }

// Intern makes the reader share equal strings among the messages it reads, for fields that ask for it.
func (r *Reader) Intern() { r.c.strings = map[string]string{} }

// Read fills m from b. Fields that m does not name are skipped: a later release may have written them.
func (r *Reader) Read(b []byte, m Message) error {
	r.c.fields = r.c.fields[:0]
	return r.c.read(b, m.Fields)
}

// Unmarshal fills m from b.
func Unmarshal(b []byte, m Message) error { return new(Reader).Read(b, m) }

func (c *Codec) read(b []byte, fields func(*Codec)) error {
	c.reading, c.next, c.err = true, 0, nil
	if err := c.split(b); err != nil {
		return err
	}
	fields(c)
	return c.err
}

// split appends the fields of b to the list, in ascending order: take only ever looks forward.
func (c *Codec) split(b []byte) error {
	ordered := true
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return ErrMalformed
		}
		b = b[n:]
		f := field{num: uint32(tag >> 3), kind: uint8(tag & 7)}
		switch f.kind {
		case varint:
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return ErrMalformed
			}
			f.value, b = v, b[n:]
		case fixed64:
			if len(b) < 8 {
				return ErrMalformed
			}
			f.value, b = binary.LittleEndian.Uint64(b), b[8:]
		case length:
			l, n := binary.Uvarint(b)
			if n <= 0 || l > uint64(len(b)-n) {
				return ErrMalformed
			}
			f.bytes, b = b[n:n+int(l)], b[n+int(l):]
		case fixed32:
			if len(b) < 4 {
				return ErrMalformed
			}
			f.value, b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		default:
			return ErrMalformed
		}
		if k := len(c.fields); k > 0 && c.fields[k-1].num > f.num {
			ordered = false
		}
		c.fields = append(c.fields, f)
	}
	if !ordered {
		slices.SortStableFunc(c.fields, func(a, b field) int { return cmp.Compare(a.num, b.num) })
	}
	return nil
}

// take returns the next field with number n, or nil when there is none (any more).
func (c *Codec) take(n uint32, kind uint8) *field {
	for c.next < len(c.fields) && c.fields[c.next].num < n {
		c.next++
	}
	if c.next == len(c.fields) || c.fields[c.next].num != n {
		return nil
	}
	f := &c.fields[c.next]
	c.next++
	if f.kind != kind {
		c.fail(n, kind, f.kind)
		return nil
	}
	return f
}

func (c *Codec) fail(n uint32, want, got uint8) {
	if c.err == nil {
		c.err = fmt.Errorf("field %d has wire type %d, want %d: %w", n, got, want, ErrMalformed)
	}
}

func (c *Codec) tag(n uint32, kind uint8) {
	c.Buf = binary.AppendUvarint(c.Buf, uint64(n)<<3|uint64(kind))
}

type integer interface {
	~int | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Int is a field of an integer or enum type. A negative number takes ten bytes, as in protobuf's int64.
func Int[T integer](c *Codec, n uint32, v *T) {
	if c.reading {
		if f := c.take(n, varint); f != nil {
			if *v = T(f.value); uint64(int64(*v)) != f.value && c.err == nil {
				c.err = fmt.Errorf("field %d is %d, more than its type holds: %w", n, f.value, ErrMalformed)
			}
		}
		return
	}
	if *v != 0 {
		c.tag(n, varint)
		c.Buf = binary.AppendUvarint(c.Buf, uint64(int64(*v)))
	}
}

// Bool is a field of type bool.
func (c *Codec) Bool(n uint32, v *bool) {
	var x uint8
	if *v {
		x = 1
	}
	Int(c, n, &x)
	*v = x != 0
}

// Fixed64 is a field of eight bytes, for numbers that are spread over the whole range.
func (c *Codec) Fixed64(n uint32, v *uint64) {
	if c.reading {
		if f := c.take(n, fixed64); f != nil {
			*v = f.value
		}
		return
	}
	if *v != 0 {
		c.tag(n, fixed64)
		c.Buf = binary.LittleEndian.AppendUint64(c.Buf, *v)
	}
}

// Float32 is a field of type float.
func (c *Codec) Float32(n uint32, v *float32) {
	if c.reading {
		if f := c.take(n, fixed32); f != nil {
			*v = math.Float32frombits(uint32(f.value))
		}
		return
	}
	if *v != 0 {
		c.tag(n, fixed32)
		c.Buf = binary.LittleEndian.AppendUint32(c.Buf, math.Float32bits(*v))
	}
}

// Float64 is a field of type double.
func (c *Codec) Float64(n uint32, v *float64) {
	bits := math.Float64bits(*v)
	c.Fixed64(n, &bits)
	*v = math.Float64frombits(bits)
}

// String is a field of type string.
func (c *Codec) String(n uint32, v *string) {
	if c.reading {
		if f := c.take(n, length); f != nil {
			*v = string(f.bytes)
		}
		return
	}
	if *v != "" {
		c.tag(n, length)
		c.Buf = binary.AppendUvarint(c.Buf, uint64(len(*v)))
		c.Buf = append(c.Buf, *v...)
	}
}

// Text is a String field of a named string type.
func Text[T ~string](c *Codec, n uint32, v *T) {
	s := string(*v)
	c.String(n, &s)
	*v = T(s)
}

// Shared is a String whose value recurs in many messages; a Reader that interns keeps one copy.
func (c *Codec) Shared(n uint32, v *string) {
	if !c.reading || c.strings == nil {
		c.String(n, v)
		return
	}
	f := c.take(n, length)
	if f == nil {
		return
	}
	s, ok := c.strings[string(f.bytes)]
	if !ok {
		s = string(f.bytes)
		c.strings[s] = s
	}
	*v = s
}

// UUID is a field of sixteen bytes.
func (c *Codec) UUID(n uint32, v *domain.UUID) {
	if c.reading {
		if f := c.take(n, length); f != nil {
			if len(f.bytes) != len(v) {
				c.err = fmt.Errorf("field %d has %d bytes, want 16: %w", n, len(f.bytes), ErrMalformed)
				return
			}
			copy(v[:], f.bytes)
		}
		return
	}
	if !v.IsZero() {
		c.tag(n, length)
		c.Buf = append(c.Buf, 16)
		c.Buf = append(c.Buf, v[:]...)
	}
}

// ID is a UUID field of a named type.
func ID[K domain.Kind](c *Codec, n uint32, v *domain.ID[K]) { c.UUID(n, (*domain.UUID)(v)) }

// Strings is a repeated string.
func (c *Codec) Strings(n uint32, v *[]string) {
	if c.reading {
		for f := c.take(n, length); f != nil; f = c.take(n, length) {
			*v = append(*v, string(f.bytes))
		}
		return
	}
	for _, s := range *v {
		c.tag(n, length)
		c.Buf = binary.AppendUvarint(c.Buf, uint64(len(s)))
		c.Buf = append(c.Buf, s...)
	}
}

// Sub is a message field; present says whether it is there.
func Sub[T any](c *Codec, n uint32, v *T, present bool, fields func(*T, *Codec)) bool {
	if c.reading {
		f := c.take(n, length)
		if f == nil {
			return false
		}
		c.nested(f.bytes, func(in *Codec) { fields(v, in) })
		return true
	}
	if present {
		c.tag(n, length)
		c.lengthPrefixed(func() { fields(v, c) })
	}
	return present
}

// Many is a repeated message.
func Many[T any](c *Codec, n uint32, v *[]T, fields func(*T, *Codec)) {
	if c.reading {
		for f := c.take(n, length); f != nil; f = c.take(n, length) {
			var x T
			c.nested(f.bytes, func(in *Codec) { fields(&x, in) })
			*v = append(*v, x)
		}
		return
	}
	for i := range *v {
		c.tag(n, length)
		c.lengthPrefixed(func() { fields(&(*v)[i], c) })
	}
}

func (c *Codec) nested(b []byte, f func(*Codec)) {
	in := Codec{strings: c.strings}
	if err := in.read(b, f); err != nil && c.err == nil {
		c.err = err
	}
}

// lengthPrefixed writes what body writes behind its length. Most bodies are shorter than 128 bytes, so one byte is left
// for the length and the body moved when it needs more.
func (c *Codec) lengthPrefixed(body func()) {
	at := len(c.Buf)
	c.Buf = append(c.Buf, 0)
	body()
	c.Buf = PrefixLength(c.Buf, at)
}

// PrefixLength completes b, in which one byte at place `at` waits for the length of all that follows it.
func PrefixLength(b []byte, at int) []byte {
	n := len(b) - at - 1
	if n < 0x80 {
		b[at] = byte(n)
		return b
	}
	var prefix [binary.MaxVarintLen64]byte
	l := binary.PutUvarint(prefix[:], uint64(n))
	b = append(b, prefix[1:l]...)
	copy(b[at+l:], b[at+1:at+1+n])
	copy(b[at:], prefix[:l])
	return b
}

// Optional is a message field behind a pointer; nil means absent.
func Optional[T any](c *Codec, n uint32, v **T, fields func(*T, *Codec)) {
	x := *v
	if x == nil {
		x = new(T)
	}
	if Sub(c, n, x, *v != nil, fields) {
		*v = x
	}
}
