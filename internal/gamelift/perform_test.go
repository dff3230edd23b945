package gamelift

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/smithy-go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
)

// A panic of an operation that another door asks for is an error of that call, and the log has the cause.
func TestPanicOfAPerformedOperation(t *testing.T) {
	var lines logLines
	h := NewHandler(newHall(t, 0).service, Config{Keys: keysForTest(), Log: slog.New(slog.NewTextHandler(&lines, nil))})
	replace(t, h, serve("ListFleets", look, func(*Service, context.Context, *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
		panic("a bug")
	}))
	_, err := h.Perform(t.Context(), &identity.Principal{Role: identity.Admin}, "ListFleets", []byte("{}"))
	refused, ok := errors.AsType[smithy.APIError](err)
	if !ok || refused.ErrorCode() != codeInternalService || strings.Contains(err.Error(), "bug") || !strings.Contains(lines.String(), "a bug") {
		t.Errorf("got %v, and the log %q", err, lines.String())
	}
}

// Calls of another door are counted, as its own.
func TestPerformedOperationsAreCounted(t *testing.T) {
	calls := callstats.New()
	h := NewHandler(newHall(t, 0).service, Config{Keys: keysForTest(), Log: testLog(t), Calls: calls})
	for _, role := range []identity.Role{identity.Admin, identity.Admin, identity.Client} {
		_, err := h.Perform(t.Context(), &identity.Principal{Role: role}, "ListFleets", []byte("{}"))
		if (err != nil) != (role == identity.Client) {
			t.Error(role, err)
		}
	}
	const want = `# HELP muster_calls_total Calls that were answered. refused: the request cannot be granted; throttled: too much at a time; failed: the service could not do its work.
# TYPE muster_calls_total counter
muster_calls_total{door="console",operation="ListFleets",outcome="failed"} 0
muster_calls_total{door="console",operation="ListFleets",outcome="ok"} 2
muster_calls_total{door="console",operation="ListFleets",outcome="refused"} 1
muster_calls_total{door="console",operation="ListFleets",outcome="throttled"} 0
`
	if err := testutil.CollectAndCompare(calls, strings.NewReader(want), "muster_calls_total"); err != nil {
		t.Error(err)
	}
}

// A client that leaves before its answer is no failure of the service, for which there is an alert.
func TestClientThatLeavesIsNoFailure(t *testing.T) {
	calls := callstats.New()
	h := NewHandler(newHall(t, 0).service, Config{Keys: keysForTest(), Log: testLog(t), Calls: calls})
	ctx, leave := context.WithCancel(t.Context())
	replace(t, h, serve("ListFleets", look, func(_ *Service, ctx context.Context, _ *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
		leave()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	server := httptest.NewServer(h)
	if _, err := sdkClient(server.URL, keysForTest()["AKADMIN"]).ListFleets(ctx, &gamelift.ListFleetsInput{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	server.Close() // waits for the request
	const want = `# HELP muster_calls_total Calls that were answered. refused: the request cannot be granted; throttled: too much at a time; failed: the service could not do its work.
# TYPE muster_calls_total counter
muster_calls_total{door="api",operation="ListFleets",outcome="failed"} 0
muster_calls_total{door="api",operation="ListFleets",outcome="ok"} 0
muster_calls_total{door="api",operation="ListFleets",outcome="refused"} 1
muster_calls_total{door="api",operation="ListFleets",outcome="throttled"} 0
`
	if err := testutil.CollectAndCompare(calls, strings.NewReader(want), "muster_calls_total"); err != nil {
		t.Error(err)
	}
}

// ARNs made through another door have the same region as the installation's other ARNs.
func TestRegionOfPerformedOperations(t *testing.T) {
	x := newHall(t, 0)
	h := NewHandler(x.service, Config{Keys: keysForTest(), Log: testLog(t)})
	create := func(name string) string {
		t.Helper()
		out, err := h.Perform(t.Context(), &identity.Principal{Role: identity.Admin}, "CreateLocation", []byte(`{"LocationName":"`+name+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if out := create("custom-first"); !strings.Contains(out, "arn:aws:gamelift:"+DefaultRegion+":") {
		t.Errorf("the first one: %s", out)
	}
	must(x.sdk.DeleteLocation(t.Context(), &gamelift.DeleteLocationInput{LocationName: aws.String("custom-first")}))(t)
	x.do(&hosting.CreateLocation{Name: "custom-home", Region: "eu-west-1", Account: "1"})
	if out := create("custom-second"); !strings.Contains(out, "arn:aws:gamelift:eu-west-1:") {
		t.Errorf("with a location in eu-west-1: %s", out)
	}
	x.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Name: "dev", CertificateType: "DISABLED", Region: "eu-central-1", Account: "1"}, Locations: []string{"custom-home"}})
	if out := create("custom-third"); !strings.Contains(out, "arn:aws:gamelift:eu-central-1:") {
		t.Errorf("with a fleet in eu-central-1: %s", out)
	}
}
