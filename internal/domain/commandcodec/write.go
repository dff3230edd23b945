package commandcodec

import (
	"encoding"
	"encoding/binary"
	"math/big"
	"reflect"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// The major types of CBOR that occur in forms and answers (RFC 8949, section 3.1).
const (
	anInteger = 0 << 5
	aNegative = 1 << 5
	someBytes = 2 << 5
	aText     = 3 << 5
	anArray   = 4 << 5
	aMap      = 5 << 5
	headMax   = 9 // bytes
)

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

func appendText(b []byte, text string) []byte {
	return append(appendHead(b, aText, uint64(len(text))), text...)
}

func (b *buffer) head(major byte, n uint64) { b.Write(appendHead(b.AvailableBuffer(), major, n)) }

// writer writes values of one type as the library would, except that it omits zero fields of structs: readers leave them zero, and the journal stores
// answers. It is built once per type and does not copy values, which is most of the library's cost.
type writer func(b *buffer, v reflect.Value) error

// byLibrary writes any type.
func byLibrary(b *buffer, v reflect.Value) error {
	return library.MarshalToBuffer(v.Interface(), &b.Buffer)
}

var writers sync.Map // by type

func writerOf(t reflect.Type) writer {
	if known, ok := writers.Load(t); ok {
		return known.(writer)
	}
	w := makeWriter(t, nil)
	writers.Store(t, w)
	return w
}

// makeWriter returns the writer of a type nested in others. A recursive type is left to the library.
func makeWriter(t reflect.Type, within []reflect.Type) writer {
	if slices.Contains(within, t) || writesItself(t) {
		return byLibrary
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Bool:
		return func(b *buffer, v reflect.Value) error {
			if v.Bool() {
				return b.WriteByte(0xf5)
			}
			return b.WriteByte(0xf4)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(b *buffer, v reflect.Value) error {
			if n := v.Int(); n < 0 {
				b.head(aNegative, uint64(-(n + 1)))
			} else {
				b.head(anInteger, uint64(n))
			}
			return nil
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(b *buffer, v reflect.Value) error {
			b.head(anInteger, v.Uint())
			return nil
		}
	case reflect.String:
		return func(b *buffer, v reflect.Value) error {
			b.Write(appendText(b.AvailableBuffer(), v.String()))
			return nil
		}
	case reflect.Pointer:
		element := makeWriter(t.Elem(), within)
		return orNull(func(b *buffer, v reflect.Value) error { return element(b, v.Elem()) })
	case reflect.Slice:
		return orNull(listWriter(t, within))
	case reflect.Array:
		return listWriter(t, within)
	case reflect.Struct:
		return structWriter(t, within)
	}
	return byLibrary
}

// writesItself reports whether the library would call a marshalling method of the type, or has a special form for it.
func writesItself(t reflect.Type) bool {
	for _, x := range []reflect.Type{t, reflect.PointerTo(t)} {
		if x.Implements(reflect.TypeFor[cbor.Marshaler]()) || x.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) {
			return true
		}
	}
	return t == reflect.TypeFor[big.Int]()
}

func orNull(w writer) writer {
	return func(b *buffer, v reflect.Value) error {
		if v.IsNil() {
			b.Write(null)
			return nil
		}
		return w(b, v)
	}
}

func listWriter(t reflect.Type, within []reflect.Type) writer {
	if t.Elem().Kind() == reflect.Uint8 && !writesItself(t.Elem()) {
		return writeBytes
	}
	element := makeWriter(t.Elem(), within)
	return func(b *buffer, v reflect.Value) error {
		b.head(anArray, uint64(v.Len()))
		for i := range v.Len() {
			if err := element(b, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
}

func writeBytes(b *buffer, v reflect.Value) error {
	b.head(someBytes, uint64(v.Len()))
	if v.Kind() == reflect.Slice || v.CanAddr() {
		b.Write(v.Bytes())
		return nil
	}
	for i := range v.Len() { // of a command that is passed by value
		b.WriteByte(byte(v.Index(i).Uint()))
	}
	return nil
}

func structWriter(t reflect.Type, within []reflect.Type) writer {
	type member struct {
		index []int
		key   []byte
		write writer
	}
	var members []member
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("cbor")
		switch {
		case tag == "-" && !f.Anonymous, !f.IsExported() && !f.Anonymous:
			continue
		case tag != "", f.Tag.Get("json") != "", f.Anonymous && f.Type.Kind() != reflect.Struct:
			return byLibrary // the library knows these rules
		case f.Anonymous:
			continue // its fields follow
		}
		members = append(members, member{f.Index, appendText(nil, f.Name), makeWriter(f.Type, within)})
	}
	return func(b *buffer, v reflect.Value) error {
		n := 0
		for i := range members {
			if !v.FieldByIndex(members[i].index).IsZero() {
				n++
			}
		}
		b.head(aMap, uint64(n))
		for i := range members {
			x := v.FieldByIndex(members[i].index)
			if x.IsZero() {
				continue
			}
			b.Write(members[i].key)
			if err := members[i].write(b, x); err != nil {
				return err
			}
		}
		return nil
	}
}
