package gameclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

var errAttribute = errors.New("a string, a number, []string, map[string]float64, or JSON with exactly one of S, N, SL and SDM")

// attributeOf converts an attribute of MatchPlayer to the API's value.
func attributeOf(value any) (types.AttributeValue, error) {
	var a types.AttributeValue
	switch v := value.(type) {
	case string:
		a.S = &v
	case int:
		n := float64(v)
		a.N = &n
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return a, errors.New("a finite number")
		}
		a.N = &v
	case []string:
		a.SL = v
	case map[string]float64:
		a.SDM = v
	case json.RawMessage:
		return attributeFromJSON(v)
	default:
		return a, errAttribute
	}
	return a, nil
}

// attributeFromJSON reads the JSON that nodes of visual scripting produce.
func attributeFromJSON(raw json.RawMessage) (types.AttributeValue, error) {
	var read struct {
		S   *string
		N   *float64
		SL  *[]string
		SDM *map[string]float64
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if err := in.Decode(&read); err != nil || in.More() {
		return types.AttributeValue{}, errAttribute
	}
	a := types.AttributeValue{S: read.S, N: read.N}
	set := 0
	for _, is := range []bool{read.S != nil, read.N != nil, read.SL != nil, read.SDM != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return types.AttributeValue{}, errAttribute
	}
	if read.SL != nil {
		a.SL = *read.SL
	}
	if read.SDM != nil {
		a.SDM = *read.SDM
	}
	return a, nil
}
