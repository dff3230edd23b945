package calls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/jsonbody"
)

// depthMax is the deepest nesting of a request. Attributes go to the clients of other players, and many JSON parsers stop at 64.
const depthMax = 32

// valuesMax bounds the values and names of a request. The largest request of a realm, 200 players with every field set, has 4,000;
// attributes of 16 KiB may have 8,000.
const valuesMax = 10_000

// bounds are checked before a request is decoded, because some values of two bytes take hundreds of bytes decoded. They also refuse ambiguous JSON.
var bounds = jsonbody.Bounds{Depth: depthMax, Values: valuesMax}

// strictFormats refuses formats that encoding/json would silently accept.
var strictFormats = map[string]huma.Format{
	"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: readJSON},
}

// readJSON decodes a request for huma, which calls it twice: first with a generic target, to validate the request against its declaration,
// and then for the body of the call, which stays undecoded.
func readJSON(data []byte, into any) error {
	if body, second := into.(*json.RawMessage); second {
		*body = bytes.Clone(data) // huma uses the buffer again
		return nil
	}
	if err := bounds.Check(data); err != nil {
		return sayWhere(err)
	}
	return unmarshal(data, into)
}

// decode decodes a body that fits its declaration. It still refuses numbers that are too large.
func decode(body json.RawMessage, into any) error {
	if err := unmarshal(body, into); err != nil {
		return misfit(http.StatusUnprocessableEntity, "validation failed", []error{&huma.ErrorDetail{Location: "body", Message: err.Error()}})
	}
	return nil
}

func unmarshal(data []byte, into any) error {
	err := jsonbody.Decode(data, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if strings.HasPrefix(wrong.Value, "number") {
			return fmt.Errorf("%s: %s is too large", wrong.Field, wrong.Value)
		}
		return fmt.Errorf("%s: %s, want another type", wrong.Field, wrong.Value)
	}
	return err
}

func sayWhere(err error) error {
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	_, tooMuch := errors.AsType[*jsonbody.BoundError](err)
	switch {
	case tooMuch:
		return err
	case !ok:
		return errors.New("want valid JSON")
	case wrong.Err == jsontext.ErrDuplicateName:
		return fmt.Errorf("%q is given twice", wrong.JSONPointer.LastToken())
	case errors.Is(wrong.Err, io.ErrUnexpectedEOF):
		return errors.New("want valid JSON: it ends too early")
	}
	return fmt.Errorf("want valid JSON: %s at byte %d", wrong.Err, wrong.ByteOffset)
}
