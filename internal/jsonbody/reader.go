// Package jsonbody reads JSON that came from outside, before it is decoded or instead of it, and within bounds.
package jsonbody

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads text in place, token by token or value by value, and allocates next to nothing.
type Reader struct {
	jsontext.Decoder
	text bytes.Buffer
	name []byte
}

var readers = sync.Pool{New: func() any { return new(Reader) }}

// Lenient readers accept what others than the text's author may read in two ways: repeated names, and invalid UTF-8.
var Lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Read returns a reader of text. Free it in the end; neither it nor its names may be used then. The values that it reads are parts of
// text.
func Read(text []byte, options ...jsontext.Options) *Reader {
	r := readers.Get().(*Reader)
	r.text = *bytes.NewBuffer(text) // the decoder knows this type, and reads it in place
	r.Reset(&r.text, options...)
	return r
}

// Free ends the use of a reader.
func (r *Reader) Free() {
	r.text = bytes.Buffer{}
	readers.Put(r)
}

// Name reads the name of a member. It is good until the next call.
func (r *Reader) Name() ([]byte, error) {
	quoted, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	if r.name = append(r.name[:0], quoted[1:len(quoted)-1]...); bytes.IndexByte(r.name, '\\') >= 0 {
		r.name, _ = jsontext.AppendUnquote(r.name[:0], quoted) // an error says only that a character was replaced
	}
	return r.name, nil
}
