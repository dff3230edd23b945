package gamelift

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// cborCodec implements Smithy RPC v2 CBOR, which the SDK for Go has used since April 2026.
type cborCodec struct{}

func (cborCodec) contentType() []string { return cborContentType }

var cborDecode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		TimeTag:           cbor.DecTagOptional,
		MaxNestedLevels:   depthMax,
		MaxMapPairs:       listMax,
		MaxArrayElements:  listMax,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		NaN:               cbor.NaNDecodeForbidden,
		Inf:               cbor.InfDecodeForbidden,
	}.DecMode()
	if err != nil {
		panic("gamelift: CBOR options: " + err.Error())
	}
	return mode
}()

func (cborCodec) scan(body []byte, c *constraint, most int64) (int64, scanResult) {
	if len(body) == 0 {
		return 0, scanned
	}
	s := cborScan{footprint: footprint{most: most}, data: body}
	r := s.document(c)
	return s.bytes, r
}

func (cborCodec) decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil // no body and an empty map mean the same
	}
	err := cborDecode.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*cbor.UnmarshalTypeError](err); ok {
		_, member, found := strings.Cut(e.StructFieldName, "Input.")
		if !found { // a member of a nested structure: types.Tag.Key
			_, member, found = strings.Cut(e.StructFieldName, ".")
		}
		if !found {
			return serializationError("the body must be a CBOR map, got %s", e.CBORType)
		}
		if bits, integer := strings.CutPrefix(e.GoType, "int"); integer && strings.HasSuffix(e.CBORType, " integer") {
			return serializationError("member %s: the number is too large for a %s bit integer", member, bits)
		}
		return serializationError("member %s, or a value in it, must be of another type than %s", member, e.CBORType) // the error names the outermost member
	}
	return serializationError("the body is not valid CBOR: %s", strings.TrimPrefix(err.Error(), "cbor: "))
}

// Major types of RFC 8949.
const (
	cborUnsigned = 0 << 5
	cborNegative = 1 << 5
	cborBytes    = 2 << 5
	cborText     = 3 << 5
	cborArray    = 4 << 5
	cborMap      = 5 << 5
	cborTag      = 6 << 5

	cborFalse   = 0xf4
	cborTrue    = 0xf5
	cborFloat32 = 0xfa
	cborFloat64 = 0xfb

	cborEpochTag = 1
)

func (cborCodec) appendOutput(dst []byte, w *wireType, v reflect.Value) []byte {
	return appendCBOR(dst, w, v)
}

func (cborCodec) appendError(dst []byte, code, message string) []byte {
	dst = appendCBORHead(dst, cborMap, 3)
	dst = appendCBORString(appendCBORString(dst, "__type"), code)
	dst = appendCBORString(appendCBORString(dst, "Message"), message)
	return appendCBORString(appendCBORString(dst, "message"), message)
}

func appendCBOR(dst []byte, w *wireType, v reflect.Value) []byte {
	if w.pointer {
		v = v.Elem()
	}
	switch w.kind {
	case wireString:
		return appendCBORString(dst, v.String())
	case wireBool:
		if v.Bool() {
			return append(dst, cborTrue)
		}
		return append(dst, cborFalse)
	case wireInt:
		n := v.Int()
		if n < 0 {
			return appendCBORHead(dst, cborNegative, uint64(-1-n))
		}
		return appendCBORHead(dst, cborUnsigned, uint64(n))
	case wireFloat: // the SDK for Go refuses a 64-bit float here
		return binary.BigEndian.AppendUint32(append(dst, cborFloat32), math.Float32bits(float32(v.Float())))
	case wireDouble:
		return appendCBORDouble(dst, v.Float())
	case wireTime: // and an untagged time here
		return appendCBORDouble(appendCBORHead(dst, cborTag, cborEpochTag), epochSeconds(v))
	case wireBlob:
		blob := v.Bytes()
		return append(appendCBORHead(dst, cborBytes, uint64(len(blob))), blob...)
	case wireList:
		dst = appendCBORHead(dst, cborArray, uint64(v.Len()))
		for i := range v.Len() {
			dst = appendCBOR(dst, w.elem, v.Index(i))
		}
		return dst
	case wireMap:
		dst = appendCBORHead(dst, cborMap, uint64(v.Len()))
		for _, key := range sortedKeys(v) {
			dst = appendCBORString(dst, key.String())
			dst = appendCBOR(dst, w.elem, v.MapIndex(key))
		}
		return dst
	default:
		return appendCBORStruct(dst, w, v)
	}
}

func appendCBORStruct(dst []byte, w *wireType, v reflect.Value) []byte {
	set := 0
	for i := range w.fields {
		if !w.fields[i].unset(v.Field(w.fields[i].index)) {
			set++
		}
	}
	dst = appendCBORHead(dst, cborMap, uint64(set))
	for i := range w.fields {
		f := &w.fields[i]
		if member := v.Field(f.index); !f.unset(member) {
			dst = append(dst, f.cborName...)
			dst = appendCBOR(dst, f.typ, member)
		}
	}
	return dst
}

func appendCBORString(dst []byte, s string) []byte {
	return append(appendCBORHead(dst, cborText, uint64(len(s))), s...)
}

func appendCBORDouble(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, cborFloat64), math.Float64bits(f))
}

// appendCBORHead writes a major type with its argument in the shortest form.
func appendCBORHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= math.MaxUint8:
		return append(dst, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), n)
	}
}
