package gamelift

import (
	"fmt"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// fill sets every member of v to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("ä\"\\x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(-70000)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(18.5)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				v.Index(i).SetUint(7)
				continue
			}
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 2 {
			elem := reflect.New(v.Type().Elem()).Elem()
			fill(elem)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", i)).Convert(v.Type().Key()), elem)
		}
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(time.UnixMilli(1469498468057)))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "ResultMetadata" {
				fill(v.Field(i))
			}
		}
	default:
		panic("no filling for " + v.Type().String())
	}
}

// normal makes times comparable: codecs may give them in another location, CBOR with the rounding of a float64.
func normal(v reflect.Value) any {
	walkTimes(v.Elem())
	return v.Interface()
}

func walkTimes(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkTimes(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkTimes(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(v.Interface().(time.Time).UTC().Round(time.Millisecond)))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "ResultMetadata" {
				walkTimes(v.Field(i))
			}
		}
	}
}

// decodeForTest reads answers as well, and is stricter than a service may be: it refuses unknown members.
func decodeForTest(c codec, body []byte, into any) error {
	if _, ok := c.(cborCodec); ok {
		strict, err := cbor.DecOptions{ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, TimeTag: cbor.DecTagRequired}.DecMode()
		if err != nil {
			return err
		}
		return strict.Unmarshal(body, into)
	}
	return c.decode(body, into)
}
