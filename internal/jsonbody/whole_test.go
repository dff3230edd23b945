package jsonbody

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestDecodeTakesWholeNumbersInAnySpelling(t *testing.T) {
	type body struct {
		Seq     uint64
		Wait    int32
		Latency map[string]int32
		Share   float64
		Kept    json.RawMessage
	}
	for text, want := range map[string]string{
		`{"Seq":12.0,"Wait":-3.0}`:                        `{"Seq":12,"Wait":-3,"Latency":null,"Share":0,"Kept":null}`,
		` { "Seq" : 1.2e1 , "Wait" : 5E2 } `:              `{"Seq":12,"Wait":500,"Latency":null,"Share":0,"Kept":null}`,
		`{"Seq":-0.0,"Latency":{"a":18.0,"b":7}}`:         `{"Seq":0,"Wait":0,"Latency":{"a":18,"b":7},"Share":0,"Kept":null}`,
		`{"Seq":9007199254740993,"Wait":1.0,"Share":0.5}`: `{"Seq":9007199254740993,"Wait":1,"Latency":null,"Share":0.5,"Kept":null}`,
		`{"Seq":1,"Share":2.0,"Kept":{"a":1.0}}`:          `{"Seq":1,"Wait":0,"Latency":null,"Share":2,"Kept":{"a":1.0}}`,
	} {
		var got body
		if err := Decode([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if said, _ := json.Marshal(got); string(said) != want {
			t.Errorf("%s: got %s, want %s", text, said, want)
		}
	}
	for _, text := range []string{`{"Seq":1.5}`, `{"Wait":1e10}`, `{"Seq":1e300}`, `{"Seq":"1.0"}`, `{"Seq":-1.0}`, `{"Seq":1.0`, `{"Seq":1.0}}`} {
		if err := Decode([]byte(text), new(body)); err == nil {
			t.Errorf("%s: taken", text)
		} else if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); !wrongType && text[len(text)-1] == '}' && text != `{"Seq":1.0}}` {
			t.Errorf("%s: %v", text, err)
		}
	}
}
