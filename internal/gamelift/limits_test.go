package gamelift

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/gamelift/model"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/rate"
)

func TestProfileHasEveryOperation(t *testing.T) {
	limits, err := LimitsNamed("gamelift")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(limits.Rates)), slices.Sorted(maps.Keys(model.Load().Operations)); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	counts := map[rate.Limit]int{}
	for _, limit := range limits.Rates {
		counts[limit]++
	}
	// As the documentation counts them; GetPlayerConnectionDetails is one more.
	want := map[rate.Limit]int{
		rate.PerSecond(200, 200): 5, rate.PerSecond(100, 100): 4, rate.PerSecond(75, 75): 2,
		rate.PerSecond(70, 70): 1, rate.PerSecond(50, 50): 1, rate.PerSecond(30, 40): 1,
		rate.PerSecond(30, 30): 42, rate.PerSecond(20, 40): 5, rate.PerSecond(20, 20): 44, rate.PerSecond(5, 10): 1,
		rate.PerSecond(1, 4): 6, rate.PerSecond(0.1, 1): 8,
	}
	if !maps.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	if _, err := LimitsNamed("amazon"); err == nil {
		t.Error("an unknown profile is no error")
	}
}

// handClock is a clock that the test moves.
type handClock struct{ offset atomic.Int64 }

var handClockStart = time.Now()

func (c *handClock) now() time.Time { return handClockStart.Add(time.Duration(c.offset.Load())) }

func (c *handClock) move(d time.Duration) { c.offset.Add(int64(d)) }

func TestTokenBucket(t *testing.T) {
	clock := new(handClock)
	x := newLimiter(Limits{Rates: map[string]rate.Limit{"a": rate.PerSecond(2, 4), "b": rate.PerSecond(0.1, 1)}, Overall: rate.PerSecond(10, 10)}, clock.now)
	taken := func(key, operation string) (n int) {
		for x.allow(key, operation) {
			n++
		}
		return n
	}
	for _, step := range []struct {
		after          time.Duration
		key, operation string
		want           int
	}{
		{0, "k", "a", 4},
		{0, "k", "b", 1},
		{0, "other", "a", 4}, // each key has its own
		{499 * time.Millisecond, "k", "a", 0},
		{time.Millisecond, "k", "a", 1},
		{time.Hour, "k", "a", 4}, // and no more than the bucket holds
		{0, "k", "unlimited", 6}, // what the overall bucket has left
		{9 * time.Second, "k", "b", 1},
		{9 * time.Second, "k", "b", 0},
		{time.Second, "k", "b", 1},
	} {
		clock.move(step.after)
		if got := taken(step.key, step.operation); got != step.want {
			t.Errorf("%+v: got %d", step, got)
		}
	}
	if newLimiter(Limits{}, clock.now) != nil || !(*limiter)(nil).allow("k", "a") {
		t.Error("the default limits rates")
	}
}

func TestBucketsAmongManyCallers(t *testing.T) {
	x := newLimiter(Limits{Rates: map[string]rate.Limit{"a": rate.PerSecond(1, 100)}}, new(handClock).now)
	var allowed atomic.Int64
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 100 {
				if x.allow("k", "a") {
					allowed.Add(1)
				}
			}
		})
	}
	done.Wait()
	if allowed.Load() != 100 {
		t.Errorf("%d requests were let through, want 100", allowed.Load())
	}
}

func TestInventedKeysTakeBoundedMemory(t *testing.T) {
	x := newLimiter(Limits{Overall: rate.PerSecond(1, 1)}, new(handClock).now)
	for i := range 3 * limitedKeysMax {
		x.allow(fmt.Sprint("key ", i), "a")
	}
	if len(x.keys) > limitedKeysMax {
		t.Errorf("%d keys are remembered", len(x.keys))
	}
}

// countedHandler counts requests and lets a test do something before each.
type countedHandler struct {
	http.Handler
	requests atomic.Int64
	before   func(n int64)
}

func (c *countedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n := c.requests.Add(1); c.before != nil {
		c.before(n)
	}
	c.Handler.ServeHTTP(w, r)
}

func listNothing(*Service, context.Context, *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
	return &gamelift.ListFleetsOutput{}, nil
}

func retryingClient(url string, key identity.AccessKey) *gamelift.Client {
	return gamelift.New(gamelift.Options{
		BaseEndpoint: &url, Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider(key.ID, key.Secret, ""),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond }), // three attempts, as by default
	})
}

func TestSDKsRetryWhatIsThrottled(t *testing.T) {
	clock := new(handClock)
	h := NewHandler(&Service{}, Config{
		Keys: keysForTest(), Log: testLog(t), Now: clock.now, Limits: Limits{Rates: map[string]rate.Limit{"ListFleets": rate.PerSecond(1, 2)}},
	})
	replace(t, h, serve("ListFleets", look, listNothing), serve("ListBuilds", look,
		func(*Service, context.Context, *gamelift.ListBuildsInput) (*gamelift.ListBuildsOutput, error) {
			return &gamelift.ListBuildsOutput{}, nil
		}))
	counted := &countedHandler{Handler: h}
	url, key := startServer(t, counted), keysForTest()["AKADMIN"]
	sdk := retryingClient(url, key)
	list := func() error { _, err := sdk.ListFleets(t.Context(), nil); return err }
	for range 2 {
		if err := list(); err != nil {
			t.Fatal(err)
		}
	}
	counted.requests.Store(0)
	err := list()
	refused(t, err, codeThrottling)
	if n := counted.requests.Load(); n != 3 || !strings.Contains(err.Error(), "Rate exceeded") {
		t.Errorf("%d attempts ended with %v, want 3", n, err)
	}
	if thrown := (retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}).IsErrorThrottle(err); thrown.Bool() != true {
		t.Errorf("the SDK does not take %v for throttling", err)
	}

	counted.requests.Store(0)
	counted.before = func(n int64) {
		if n == 2 {
			clock.move(time.Second)
		}
	}
	if err := list(); err != nil || counted.requests.Load() != 2 {
		t.Errorf("with a token at the second attempt: %v after %d", err, counted.requests.Load())
	}
	counted.before = nil

	got := jsonClient{url: url, key: key}.call(t, "ListFleets", "{}")
	want := `{"__type":"ThrottlingException","Message":"Rate exceeded","message":"Rate exceeded"}`
	if got.status != http.StatusBadRequest || got.raw != want || got.header.Get("X-Amzn-Errortype") != codeThrottling {
		t.Errorf("got %d %s, want 400 %s", got.status, got.raw, want)
	}
	if got := (jsonClient{url: url, key: key}).call(t, "ListBuilds", "{}"); got.status != http.StatusOK {
		t.Errorf("another operation: got %s", got.raw)
	}
	if err := func() error {
		_, err := retryingClient(url, keysForTest()["AKREADONLY"]).ListFleets(t.Context(), nil)
		return err
	}(); err != nil {
		t.Errorf("another key: %v", err)
	}
	// An unauthenticated client takes no tokens of a key.
	clock.move(time.Second)
	thief := key
	thief.Secret = "wrong"
	for range 5 {
		(jsonClient{url: url, key: thief}).call(t, "ListFleets", "{}")
	}
	if err := list(); err != nil {
		t.Errorf("after another caller's attempts: %v", err)
	}
}

func TestMoreThanTheProcessCanWorkOn(t *testing.T) {
	working, release := make(chan struct{}), make(chan struct{})
	h := NewHandler(&Service{}, Config{Keys: keysForTest(), Log: testLog(t), Limits: Limits{Working: 1}})
	replace(t, h, serve("ListFleets", look, func(*Service, context.Context, *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
		working <- struct{}{}
		<-release
		return &gamelift.ListFleetsOutput{}, nil
	}))
	c := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}
	first := make(chan jsonAnswer)
	go func() { first <- c.call(t, "ListFleets", "{}") }()
	<-working
	if got := c.call(t, "ListFleets", "{}"); got.body["__type"] != codeThrottling {
		t.Errorf("beside another request: got %s", got.raw)
	}
	_, err := sdkClient(c.url, c.key).ListFleets(t.Context(), nil)
	refused(t, err, codeThrottling)
	release <- struct{}{}
	if got := <-first; got.status != http.StatusOK {
		t.Errorf("the one that was there: got %s", got.raw)
	}
	go func() { <-working; release <- struct{}{} }()
	if got := c.call(t, "ListFleets", "{}"); got.status != http.StatusOK {
		t.Errorf("after it: got %s", got.raw)
	}
}

func TestLargeBodiesTakeBoundedMemory(t *testing.T) {
	h := newTestHandler(t, serve("ListFleets", look, listNothing))
	if !h.admission.arriving.Take("127.0.0.1", arrivingShare-smallRequest) {
		t.Fatal("an address has no share")
	}
	c := jsonClient{url: startServer(t, h), key: keysForTest()["AKADMIN"]}
	large := `{"x":"` + strings.Repeat("x", 2*smallRequest) + `"}`
	if got := c.call(t, "ListFleets", large); got.body["__type"] != codeThrottling {
		t.Errorf("got %d %s", got.status, got.raw)
	}
	if got := c.call(t, "ListFleets", "{}"); got.status != http.StatusOK {
		t.Errorf("a small one: got %s", got.raw)
	}
	h.admission.arriving.Give("127.0.0.1", arrivingShare-smallRequest)
	if got := c.call(t, "ListFleets", large); got.status != http.StatusOK {
		t.Errorf("with room: got %s", got.raw)
	}
	broken := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(large), brokenBody{}))
	broken.Header.Set("X-Amz-Target", "GameLift.ListFleets")
	broken.ContentLength = int64(2 * len(large))
	h.ServeHTTP(httptest.NewRecorder(), broken)
	h.admission.isEmpty(t)
}

// isEmpty checks that all requests gave back what they took.
func (a *admission) isEmpty(t *testing.T) {
	t.Helper()
	for name, p := range a.pools() {
		if p.Taken() != 0 {
			t.Errorf("%s: %d were not given back", name, p.Taken())
		}
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.New("gone") }

func BenchmarkLimiter(b *testing.B) {
	limits, _ := LimitsNamed("gamelift")
	x := newLimiter(limits, time.Now)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			x.allow("MUSTAAAAAAAAAAAAAAAA", "CreatePlayerSession")
		}
	})
}
