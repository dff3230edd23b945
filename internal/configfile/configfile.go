// Package configfile reads the JSON files that settings name, and gathers all mistakes of one.
package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// bytesMax is how long a file may be.
const bytesMax = 1 << 20

// nameForm is that of names that begin those of principals, PROVIDER/SUBJECT, and are in URLs.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// IsName reports whether a provider, an issuer or an authority in a file may have this name: 1 to 32 lower-case letters, digits and hyphens.
func IsName(s string) bool { return nameForm.MatchString(s) }

// Read gives the content of a file to parse, and its errors the path.
func Read[T any](path string, parse func(content []byte) (T, error)) (T, error) {
	var none T
	file, err := os.Open(path)
	if err != nil {
		return none, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, bytesMax+1))
	if err != nil {
		return none, err
	}
	if len(content) > bytesMax {
		return none, fmt.Errorf("%s has more than %d bytes", path, bytesMax)
	}
	x, err := parse(content)
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// Decode decodes the object of a file. Fields that it does not know, or that are there twice, are mistakes. Errors name the line where the decoder knows it.
func Decode(content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return inLine(content, err)
	}
	if rest := bytes.TrimLeft(content[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("line %d: want nothing after the object", line(content, int64(len(content)-len(rest)+1)))
	}
	return once(content)
}

// once refuses a name that an object has twice, because encoding/json keeps the last one and would silently drop a rule of the file.
func once(content []byte) error {
	_, err := jsontext.NewDecoder(bytes.NewReader(content)).ReadValue()
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(wrong.Err, jsontext.ErrDuplicateName):
		return fmt.Errorf("line %d: %q is given twice", line(content, wrong.ByteOffset+1), wrong.JSONPointer.LastToken())
	}
	return fmt.Errorf("line %d: %w", line(content, wrong.ByteOffset+1), wrong.Err)
}

func inLine(content []byte, err error) error {
	if err == io.EOF {
		return errors.New("is empty, want a JSON object")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("line %d: the file ends before its object does", line(content, int64(len(content))))
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", line(content, wrong.Offset), err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("line %d: %w", line(content, wrong.Offset), err)
	}
	return err
}

// line is that of the byte before an offset.
func line(content []byte, offset int64) int {
	return 1 + bytes.Count(content[:max(0, min(offset, int64(len(content)))-1)], []byte("\n"))
}
