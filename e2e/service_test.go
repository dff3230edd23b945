package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

const region = "us-east-1"

// patience bounds every wait for a condition. It is only for hanging tests to end; nothing depends on its length.
const patience = 2 * time.Minute

// cannotRun skips a test for which this machine lacks a privilege or a program. CI runs every test, as root.
func cannotRun(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// service is a running Muster that can be killed and started again on the same address and data.
type service struct {
	t       *testing.T
	binary  string   // empty: musterBinary
	wrap    []string // a command to run Muster under, such as prlimit
	args    []string
	env     []string // additional variables
	data    string
	address string // host:port
	logs    *output
	stderr  *os.File // receives the log instead of logs; may be nil

	client *gamelift.Client // of this start; connections to an earlier one are dead
	calls  *calls           // counts the calls of clients; nil: not counted

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd is over
}

// startService starts Muster for development, unless the arguments say otherwise, and waits until it is healthy.
func startService(t *testing.T, args ...string) *service {
	t.Helper()
	s := newService(t, args...)
	s.start()
	return s
}

func newService(t *testing.T, args ...string) *service {
	t.Helper()
	s := &service{t: t, args: args, data: t.TempDir(), address: porttest.Free(t), logs: newOutput()}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("log of the service:\n%s", s.logs.tail(60))
		}
	})
	return s
}

// in returns the service for a part of a test, which may use but not end it.
func (s *service) in(t *testing.T) *service {
	return &service{t: t, data: s.data, address: s.address, logs: s.logs, client: s.client, calls: s.calls}
}

func (s *service) start() {
	s.t.Helper()
	s.client = s.apiWith("any", "any")
	s.launch()
	for {
		if s.healthy() {
			return
		}
		select {
		case <-s.exited:
			s.t.Fatalf("muster exited (%v) before it was healthy:\n%s", s.cmd.ProcessState, s.logs.tail(40))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// launch starts the process and does not wait for anything.
func (s *service) launch() {
	s.t.Helper()
	args := append([]string{"serve", "--data", s.data, "--listen", s.address}, s.args...)
	if !slices.ContainsFunc(s.args, func(a string) bool { return strings.HasPrefix(a, "--dev") }) {
		args = append(args, "--dev")
	}
	line := slices.Concat(s.wrap, []string{cmp.Or(s.binary, musterBinary)}, args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = cleanEnvironment(s.env...)
	cmd.Stdout, cmd.Stderr = s.logs, s.logs
	if s.stderr != nil {
		cmd.Stderr = s.stderr
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(exited)
	}()
	s.mu.Lock()
	s.cmd, s.exited = cmd, exited
	s.mu.Unlock()
}

// cleanEnvironment returns the environment without settings of Muster, AWS clients, OpenTelemetry and server SDKs.
func cleanEnvironment(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "MUSTER_") || strings.HasPrefix(e, "AWS_") || strings.HasPrefix(e, "GAMELIFT_") || strings.HasPrefix(e, "OTEL_")
	})
	return append(env, more...)
}

func (s *service) healthy() bool {
	client := http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Get(s.url() + "/healthz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// untilLogged waits for a line of the log. A test may see an effect before an earlier log line arrives.
func (s *service) untilLogged(part string) {
	s.t.Helper()
	s.logs.mustHave(s.t, part)
}

// staysHealthy checks that the service still serves others.
func (s *service) staysHealthy() {
	s.t.Helper()
	waittest.Until(s.t, "the service to be well", s.healthy)
}

// kill ends the process as suddenly as a power cut.
func (s *service) kill() {
	s.mu.Lock()
	cmd, exited := s.cmd, s.exited
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill() // fails only when it is over already
	<-exited
}

// stop stops the service normally and waits for its end.
func (s *service) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatal("muster did not end after SIGTERM")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("muster ended after SIGTERM with status %d, want 0", code)
	}
}

func (s *service) url() string { return "http://" + s.address }
func (s *service) ws() string  { return "ws://" + s.address }

// api returns the AWS SDK's client for Go, without retries, so that tests see the first answer.
func (s *service) api() *gamelift.Client { return s.client }

func (s *service) apiWith(key, secret string) *gamelift.Client {
	return gamelift.New(gamelift.Options{
		Region:           region,
		BaseEndpoint:     aws.String(s.url()),
		Credentials:      credentials.NewStaticCredentialsProvider(key, secret, ""),
		RetryMaxAttempts: 1,
		HTTPClient:       wholeAnswers{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}, s.calls},
	})
}

// wholeAnswers reads an answer before the SDK gets it. Otherwise the SDK, which closes its request's body as soon as
// the headers are there, at times loses the connection under an answer of more than a few KiB (seen with smithy-go
// 1.28.8 against a plain net/http server as well). It then repeats the call by itself, which these tests forbid.
type wholeAnswers struct {
	*http.Client
	calls *calls
}

func (c wholeAnswers) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if c.calls != nil { // as CBOR, the operation is the last part of the path
		code := resp.Header.Get("X-Amzn-Errortype")
		if code == "" && resp.StatusCode >= http.StatusBadRequest {
			code = resp.Status
		}
		c.calls.note(path.Base(req.URL.Path), code)
	}
	return resp, nil
}

// authority writes the certificate authority of --dev to a file.
func (s *service) authority() string {
	s.t.Helper()
	cmd := exec.Command(musterBinary, "ca", "--data", s.data, "--pem")
	cmd.Env = cleanEnvironment()
	pem, err := cmd.Output()
	must(s.t, err)
	file := filepath.Join(s.t.TempDir(), "ca.pem")
	must(s.t, os.WriteFile(file, pem, 0o600))
	return file
}

// place is a fleet with one registered compute, where game servers can connect.
type place struct {
	*service
	fleet, location, compute, token string
}

// prepare creates a location, a fleet, a compute and a token.
func (s *service) prepare() *place {
	s.t.Helper()
	return s.prepareAt("custom-home")
}

func (s *service) prepareAt(location string) *place {
	s.t.Helper()
	ctx, api := s.t.Context(), s.api()
	p := &place{service: s, location: location, compute: "DesktopPC"}
	_, err := api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: &p.location})
	must(s.t, err)
	fleet, err := api.CreateFleet(ctx, &gamelift.CreateFleetInput{
		Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: &p.location}},
	})
	must(s.t, err)
	p.fleet = *fleet.FleetAttributes.FleetId
	_, err = api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{
		FleetId: &p.fleet, ComputeName: &p.compute, IpAddress: aws.String("127.0.0.1"), Location: &p.location,
	})
	must(s.t, err)
	token, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &p.fleet, ComputeName: &p.compute})
	must(s.t, err)
	p.token = *token.AuthToken
	return p
}

// createGameSession waits until a process is free and creates a session.
func (p *place) createGameSession(playersMax int32) *types.GameSession {
	p.t.Helper()
	return p.createWhenFree(&gamelift.CreateGameSessionInput{MaximumPlayerSessionCount: &playersMax, Name: aws.String("Debug")})
}

// createWhenFree waits until a process is free and creates a session in the place's fleet and location. The first report of a process's health may still be under way.
func (p *place) createWhenFree(in *gamelift.CreateGameSessionInput) (created *types.GameSession) {
	p.t.Helper()
	in.FleetId, in.Location = &p.fleet, &p.location
	waittest.Until(p.t, "a free server process", func() bool {
		out, err := p.api().CreateGameSession(p.t.Context(), in)
		if isError[*types.FleetCapacityExceededException](err) {
			return false
		}
		must(p.t, err)
		created = out.GameSession
		return true
	})
	return created
}

func (s *service) gameSession(id string) types.GameSession {
	s.t.Helper()
	out, err := s.api().DescribeGameSessions(s.t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: &id})
	must(s.t, err)
	if len(out.GameSessions) != 1 {
		s.t.Fatalf("DescribeGameSessions %s: got %d sessions, want 1", id, len(out.GameSessions))
	}
	return out.GameSessions[0]
}

func (s *service) untilGameSession(id string, want ...types.GameSessionStatus) types.GameSession {
	s.t.Helper()
	var last types.GameSession
	waittest.Until(s.t, fmt.Sprintf("game session %s to be %s", id, want), func() bool {
		last = s.gameSession(id)
		return slices.Contains(want, last.Status)
	})
	return last
}

func (s *service) reserve(gameSession, player string) (*types.PlayerSession, error) {
	out, err := s.api().CreatePlayerSession(s.t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: &gameSession, PlayerId: &player})
	if err != nil {
		return nil, err
	}
	return out.PlayerSession, nil
}

func (s *service) mustReserve(gameSession, player string) string {
	s.t.Helper()
	ps, err := s.reserve(gameSession, player)
	must(s.t, err)
	return *ps.PlayerSessionId
}

func (s *service) playerSession(id string) types.PlayerSession {
	s.t.Helper()
	out, err := s.api().DescribePlayerSessions(s.t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerSessionId: &id})
	must(s.t, err)
	if len(out.PlayerSessions) != 1 {
		s.t.Fatalf("DescribePlayerSessions %s: got %d, want 1", id, len(out.PlayerSessions))
	}
	return out.PlayerSessions[0]
}

func (s *service) untilPlayer(id string, want types.PlayerSessionStatus) {
	s.t.Helper()
	waittest.Until(s.t, fmt.Sprintf("player session %s to be %s", id, want), func() bool { return s.playerSession(id).Status == want })
}

// eventsOf returns the codes of a fleet's events.
func (p *place) eventsOf() []types.EventCode {
	p.t.Helper()
	out, err := p.api().DescribeFleetEvents(p.t.Context(), &gamelift.DescribeFleetEventsInput{FleetId: &p.fleet})
	must(p.t, err)
	codes := make([]types.EventCode, len(out.Events))
	for i, e := range out.Events {
		codes[i] = e.EventCode
	}
	return codes
}

func (p *place) untilEvent(code types.EventCode) {
	p.t.Helper()
	waittest.Until(p.t, "fleet event "+string(code), func() bool { return slices.Contains(p.eventsOf(), code) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// output collects a program's output and allows tests to wait for a part of it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced when there is more
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// until waits for a text and returns its whole line.
func (o *output) until(ctx context.Context, part string) (string, error) {
	for {
		o.mu.Lock()
		text, changed := o.text.String(), o.changed
		o.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) && strings.HasSuffix(line, "\n") {
				return strings.TrimSuffix(line, "\n"), nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", fmt.Errorf("wait for output %q: %w; there is:\n%s", part, ctx.Err(), o.tail(20))
		}
	}
}

// mustHave is until with the usual patience of a test.
func (o *output) mustHave(t *testing.T, part string) (line string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	line, err := o.until(ctx, part)
	must(t, err)
	return line
}

func (o *output) tail(lines int) string {
	all := strings.SplitAfter(o.String(), "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}
