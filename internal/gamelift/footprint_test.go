package gamelift

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/identity"
)

// allocated returns the number of bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func cborRepeated(head []byte, item string, n int) []byte {
	body := appendCBORHead(bytes.Clone(head), cborArray, uint64(n))
	return append(body, strings.Repeat(item, n)...)
}

var (
	cborPlayers = append([]byte{0xa1}, "\x67Players"...)
	// A player with one attribute that is an empty structure: 20 bytes, and a Go map of a kilobyte.
	cborPlayer = "\xa1\x70PlayerAttributes\xa1\x61a\xa0"
)

// Each body takes many times its size once decoded.
var amplified = []struct {
	name string
	c    codec
	body []byte
}{
	{"empty players", cborCodec{}, cborRepeated(cborPlayers, "\xa0", listMax)},
	{"players with a map", cborCodec{}, cborRepeated(cborPlayers, cborPlayer, listMax)},
	{"empty players", jsonCodec{}, []byte(`{"Players":[{}` + strings.Repeat(",{}", 1<<20) + `]}`)},
	{"players with a map", jsonCodec{}, []byte(`{"Players":[{}` + strings.Repeat(`,{"PlayerAttributes":{"a":{}}}`, 100_000) + `]}`)},
	{"escaped names", jsonCodec{}, []byte(`{"Pl\u0061yers":[{}` + strings.Repeat(`,{"Pl\u0061yerAttributes":{"a":{}}}`, 100_000) + `]}`)},
	{"latencies", jsonCodec{}, []byte(`{"Players":[{}` + strings.Repeat(`,{"LatencyInMs":{"a":1}}`, 100_000) + `]}`)},
	{"unknown members", jsonCodec{}, []byte(`{"a":[0` + strings.Repeat(",0", 1<<20) + `]}`)},
}

func TestDecodedInputsAreBoundedBeforeTheyAreDecoded(t *testing.T) {
	op := compiledOperations()["StartMatchmaking"]
	for _, each := range amplified {
		work := work{a: new(newAdmission(Limits{})), by: new(identity.Principal)}
		var err error
		took := allocated(func() { _, err = decodeInput(each.c, op, each.body, &work) })
		if e, ok := err.(smithy.APIError); ok && e.ErrorCode() == codeEntityTooLarge && took < 64<<10 {
			continue
		}
		if err != nil || took > work.decoded {
			t.Errorf("%s as %T: got %v; %d bytes were allocated for a body of %d, and room made for %d", each.name, each.c, err, took, len(each.body), work.decoded)
		}
	}
}

// The scan's sum equals the decoder's allocations within a factor. Otherwise the bounds would be useless, or refuse inputs
// well within them.
func TestFootprintIsWhatDecodingTakes(t *testing.T) {
	filled := compiledOperations()["StartMatchmaking"].make().(*gamelift.StartMatchmakingInput)
	for range 10 {
		p := types.Player{PlayerId: new(strings.Repeat("é", 500)), LatencyInMs: map[string]int32{}, PlayerAttributes: map[string]types.AttributeValue{}}
		for i := range 10 {
			p.LatencyInMs[strings.Repeat("r", i+1)] = 50
			p.PlayerAttributes[strings.Repeat("a", i+1)] = types.AttributeValue{SL: []string{"one", "two", strings.Repeat("x", 100)}}
			p.PlayerAttributes[strings.Repeat("n", i+1)] = types.AttributeValue{SDM: map[string]float64{"one": 1, "two": 2}, N: new(7.5)}
		}
		filled.Players = append(filled.Players, p)
	}
	plan := wirePlans{}.plan(reflect.TypeFor[gamelift.StartMatchmakingInput]())
	op := compiledOperations()["StartMatchmaking"]
	for _, c := range []codec{jsonCodec{}, cborCodec{}} {
		bodies := [][]byte{c.appendOutput(nil, plan, reflect.ValueOf(filled).Elem())}
		for _, each := range amplified {
			if each.c == c && !bytes.HasPrefix(each.body, []byte(`{"a"`)) {
				bodies = append(bodies, each.body)
			}
		}
		for i, body := range bodies {
			if i > 0 { // the first is as it came; of the others a part that passes
				body = fewer(c, body)
			}
			bytes, result := c.scan(body, op.constraints, op.bounds.memory)
			if result != scanned {
				t.Fatalf("%T, body %d: %d", c, i, result)
			}
			_ = c.decode(body, op.make()) // fills pools
			var err error
			took := allocated(func() { err = c.decode(body, op.make()) })
			if err != nil {
				t.Fatal(err)
			}
			if took > 2*bytes+4<<10 || bytes > 8*took {
				t.Errorf("%T, body %d: counted %d bytes, decoding allocated %d", c, i, bytes, took)
			}
		}
	}
}

// fewer returns a body like those of amplified, with few enough elements to pass.
func fewer(c codec, body []byte) []byte {
	if _, ok := c.(cborCodec); ok {
		item := string(body[len(cborPlayers)+3:])
		if strings.HasPrefix(item, cborPlayer) {
			return cborRepeated(cborPlayers, cborPlayer, 1000)
		}
		return cborRepeated(cborPlayers, "\xa0", 1000)
	}
	text := string(body)
	item := text[strings.Index(text, ",")+1:]
	if i := strings.Index(item, ",{"); i > 0 {
		item = item[:i]
	}
	return []byte(`{"Players":[{}` + strings.Repeat(","+item, 1000) + `]}`)
}

func TestCBORThatNoMemberNeeds(t *testing.T) {
	member := append([]byte{0xa1}, "\x7aMaximumPlayerSessionCount"...)
	member[1] = 0x78
	member = append([]byte{0xa1, 0x78, 25}, "MaximumPlayerSessionCount"...)
	bignum := append(append(bytes.Clone(member), 0xc2), appendCBORHead(nil, cborBytes, 4<<20)...)
	bignum = append(bignum, make([]byte, 4<<20)...)
	deep := append(append([]byte{0xa1, 0x61, 'x'}, bytes.Repeat([]byte{0x81}, 5000)...), 0)
	operation := compiledOperations()["CreateGameSession"] // compiled here, so that the first case does not count it
	for name, each := range map[string]struct {
		body []byte
		want string
	}{
		"bignum":              {bignum, "CBOR tag"},
		"small bignum":        {append(bytes.Clone(member), 0xc2, 0x41, 7), "CBOR tag"},
		"negative bignum":     {append(bytes.Clone(member), 0xc3, 0x41, 7), "CBOR tag"},
		"decimal":             {append(bytes.Clone(member), 0xc4, 0x82, 0, 7), "CBOR tag"},
		"tag in a tag":        {append(bytes.Clone(member), 0xc1, 0xc1, 7), "CBOR tag"},
		"unknown bignum":      {[]byte{0xa1, 0x61, 'x', 0xc2, 0x41, 7}, "CBOR tag"},
		"nested too deep":     {deep, "nested more than"},
		"nested too deep [_":  {append(append([]byte{0xa1, 0x61, 'x'}, bytes.Repeat([]byte{0x9f}, 5000)...), bytes.Repeat([]byte{0xff}, 5000)...), "nested more than"},
		"more than is there":  {append(bytes.Clone(member), 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "not valid CBOR"},
		"break with no begin": {append(bytes.Clone(member), 0xff), "not valid CBOR"},
	} {
		work := work{a: new(newAdmission(Limits{})), by: new(identity.Principal)}
		var err error
		took := allocated(func() {
			_, err = decodeInput(cborCodec{}, operation, each.body, &work)
		})
		if err == nil || !strings.Contains(err.Error(), each.want) || took > 64<<10 {
			t.Errorf("%s: got %v after %d bytes, want one with %q", name, err, took, each.want)
		}
	}
}

// The SDKs for Java and Rust encode structures without a length.
func TestCBORWithoutLengths(t *testing.T) {
	body := append([]byte{0xbf, 0x7f, 0x66}, "Player"...)
	body = append(body, 0x62, 'I', 'd', 0xff)
	body = body[:1] // a member's name comes in one piece, as from all SDKs
	body = append(append(body, "\x69PlayerIds"...), 0x9f, 0x7f, 0x61, 'a', 0x61, 'b', 0xff, 0x61, 'c', 0xff)
	body = append(append(body, "\x6dPlayerDataMap"...), 0xbf, 0x61, 'c', 0x61, 'd', 0xff, 0xff)
	work := work{a: new(newAdmission(Limits{})), by: new(identity.Principal)}
	in, err := decodeInput(cborCodec{}, compiledOperations()["CreatePlayerSessions"], body, &work)
	if err != nil {
		t.Fatal(err)
	}
	want := &gamelift.CreatePlayerSessionsInput{PlayerIds: []string{"ab", "c"}, PlayerDataMap: map[string]string{"c": "d"}}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("got %+v", in)
	}
}

func TestCBORTimes(t *testing.T) {
	for _, value := range [][]byte{{0xc1, 0x1a, 0x69, 0x5b, 0xdf, 0x00}, append([]byte{0xc1, cborFloat64}, binary.BigEndian.AppendUint64(nil, math.Float64bits(1767628544.5))...)} {
		body := append(append([]byte{0xa1}, "\x69StartTime"...), value...)
		work := work{a: new(newAdmission(Limits{})), by: new(identity.Principal)}
		if _, err := decodeInput(cborCodec{}, compiledOperations()["DescribeFleetEvents"], body, &work); err != nil {
			t.Errorf("%x: %v", value, err)
		}
	}
}

func TestJSONThatNoMemberNeeds(t *testing.T) {
	for name, each := range map[string]struct{ body, want string }{
		"a million digits":  {`{"MaximumPlayerSessionCount":` + strings.Repeat("9", 1<<20) + `}`, "a number of more than 64"},
		"unknown number":    {`{"x":1` + strings.Repeat("0", 100) + `}`, "a number of more than 64"},
		"exponent":          {`{"MaximumPlayerSessionCount":1e999999999}`, "MaximumPlayerSessionCount"},
		"the same twice":    {`{"Name":"a","Name":"b"}`, "duplicate"},
		"unknown twice":     {`{"x":1,"x":2}`, "duplicate"},
		"nested too deep":   {`{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "nested more than"},
		"nested and broken": {`{"x":` + strings.Repeat("[", 5000), "nested more than"},
	} {
		work := work{a: new(newAdmission(Limits{})), by: new(identity.Principal)}
		_, err := decodeInput(jsonCodec{}, compiledOperations()["CreateGameSession"], []byte(each.body), &work)
		if err == nil || !strings.Contains(err.Error(), each.want) {
			t.Errorf("%s: got %v, want one with %q", name, err, each.want)
		}
	}
}

// Every operation takes the largest input that its members' maxima and the service's own bounds allow.
func TestBoundsOfInputs(t *testing.T) {
	for name, op := range compiledOperations() {
		b := op.bounds
		if b.body < inputBodyMin || b.body > bodyMax || b.memory < inputMemoryMin || b.memory > inputMemoryMax {
			t.Errorf("%s: %+v", name, b)
		}
		t.Logf("%-40s %8d %9d", name, b.body, b.memory)
	}
	for name, want := range map[string]int64{
		"CreateScript": 5_000_000*4/3 + 1<<20, "StartMatchmaking": playedBodyMax, "CreateGameSession": jsonBytesPerCharacter * 262144, "ListFleets": inputBodyMin,
	} {
		if got := compiledOperations()[name].bounds.body; got < want || want != inputBodyMin && got > want+256<<10 {
			t.Errorf("%s takes bodies of %d bytes, want about %d", name, got, want)
		}
	}
	large := `{"GameSessionData":"` + strings.Repeat(`\ud83d\ude00`, 262144) + `","FleetId":"fleet-1","MaximumPlayerSessionCount":2,"Location":"custom-l"}`
	h := newTestHandler(t, serve("CreateGameSession", play, func(*Service, context.Context, *gamelift.CreateGameSessionInput) (*gamelift.CreateGameSessionOutput, error) {
		return &gamelift.CreateGameSessionOutput{}, nil
	}))
	c := jsonClient{url: startServer(t, h), key: keysForTest()["AKCLIENT"]}
	if got := c.call(t, "CreateGameSession", large); got.status != http.StatusOK {
		t.Errorf("the largest game session data, with all characters escaped: %d %s", got.status, got.raw)
	}
	h.admission.isEmpty(t)
}
