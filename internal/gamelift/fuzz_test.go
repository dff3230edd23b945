package gamelift

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/sigv4"
)

// fuzzedInputs together contain every kind of member.
var fuzzedInputs = []string{
	"CreatePlayerSession", "CreatePlayerSessions", "CreateFleet", "CreateGameSession", "DescribeFleetEvents", "StartMatchmaking",
	"CreateScript", "StartGameSessionPlacement", "CreateContainerGroupDefinition", "PutScalingPolicy",
}

// fuzzCodec checks that what decodes also encodes, and decodes again to the same.
func fuzzCodec(f *testing.F, c codec) {
	plans := wirePlans{}
	for i, name := range fuzzedInputs {
		in := compiledOperations()[name].make()
		f.Add(uint8(i), c.appendOutput(nil, plans.plan(reflect.TypeOf(in).Elem()), reflect.ValueOf(in).Elem()))
		fill(reflect.ValueOf(in).Elem())
		f.Add(uint8(i), c.appendOutput(nil, plans.plan(reflect.TypeOf(in).Elem()), reflect.ValueOf(in).Elem()))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		op := compiledOperations()[fuzzedInputs[int(which)%len(fuzzedInputs)]]
		in := op.make()
		_, result := c.scan(body, op.constraints, op.bounds.memory)
		if result == overBound || result == tooDeep || result == badNumber || result == badTag {
			return // refused before it is decoded
		}
		if err := c.decode(body, in); err != nil {
			if e, ok := err.(smithy.APIError); !ok || e.ErrorCode() != codeSerialization {
				t.Fatalf("%q is refused with %v", body, err)
			}
			return
		}
		if result != scanned {
			t.Fatalf("%q decodes, and the scan takes it for malformed", body)
		}
		if err := op.constraints.check(in); err != nil {
			return // a time or a number may be one that cannot be written
		}
		plan := plans.plan(op.input)
		again := op.make()
		written := c.appendOutput(nil, plan, reflect.ValueOf(in).Elem())
		if err := c.decode(written, again); err != nil {
			t.Fatalf("%q does not decode again: %q: %v", body, written, err)
		}
		if rewritten := c.appendOutput(nil, plan, reflect.ValueOf(again).Elem()); string(rewritten) != string(written) {
			t.Fatalf("%q became %q and then %q", body, written, rewritten)
		}
	})
}

func FuzzJSON(f *testing.F) { fuzzCodec(f, jsonCodec{}) }
func FuzzCBOR(f *testing.F) { fuzzCodec(f, cborCodec{}) }

func FuzzAuthorization(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=AK/20260105/eu-central-1/gamelift/aws4_request, SignedHeaders=host;x-amz-date, Signature="+
		"9f50f754e60a88a9d3b5ae6e3682603816784100400190f50586b7ae7f2d41ac", "20260105T155049Z")
	f.Add("AWS4-HMAC-SHA256 Credential=a/b/c/d/e/aws4_request,SignedHeaders=;,Signature=", "20261332T256161Z")
	f.Fuzz(func(t *testing.T, header, date string) {
		at, ok := sigv4.ParseTime(date)
		if again := at.Format(sigv4.TimeForm); ok && date[13:15] != "60" && again != date {
			t.Errorf("date %q was read as %s", date, again)
		}
		a, problem := sigv4.ParseAuthorization(header)
		if problem != "" {
			return
		}
		if want := a.Day + "/" + a.Region + "/" + a.Service + "/aws4_request"; a.Scope != want || a.KeyID == "" || !sigv4.PlainRegion(a.Region) {
			t.Errorf("%q was taken apart as %+v", header, a)
		}
	})
}

func FuzzPageToken(f *testing.F) {
	in := &gamelift.ListFleetsInput{BuildId: aws.String("build-1")}
	f.Add(*pageToken("ListFleets", in, "fleet-7"))
	f.Add("")
	f.Fuzz(func(t *testing.T, token string) {
		cursor, err := pageCursor("ListFleets", in, &token)
		if err == nil && cursor != "fleet-7" { // the only one that was ever made
			t.Errorf("token %q was believed: %q", token, cursor)
		}
	})
}
