package playerapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// depthMax is how deep a request may be nested. What players put into attributes goes to the clients of others, and many a JSON
// reader gives up at 64.
const depthMax = 32

// strictFormats refuses what encoding/json would silently accept.
var strictFormats = map[string]huma.Format{
	"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: readJSON},
}

// readJSON reads a request. It is read twice: first as whatever it is, to be held against its declaration.
func readJSON(data []byte, into any) error {
	if _, first := into.(*any); first {
		if err := wellFormed(data); err != nil {
			return err
		}
	}
	err := json.Unmarshal(data, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if strings.HasPrefix(wrong.Value, "number") {
			return fmt.Errorf("%s: %s, want one that is not so large", wrong.Field, wrong.Value)
		}
		return fmt.Errorf("%s: %s, want something else", wrong.Field, wrong.Value)
	}
	return err
}

// wellFormed refuses what two readers could read in two ways, and what some cannot read at all.
func wellFormed(data []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		_, err := d.ReadToken()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return sayWhere(err)
		case d.StackDepth() > depthMax:
			return fmt.Errorf("nested more than %d deep", depthMax)
		}
	}
}

func sayWhere(err error) error {
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok:
		return errors.New("want valid JSON")
	case wrong.Err == jsontext.ErrDuplicateName:
		return fmt.Errorf("%q is there twice", wrong.JSONPointer.LastToken())
	case errors.Is(wrong.Err, io.ErrUnexpectedEOF):
		return errors.New("want valid JSON: it ends too early")
	}
	return fmt.Errorf("want valid JSON: %s at byte %d", wrong.Err, wrong.ByteOffset)
}
