package e2e

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
)

// startProduction starts Muster without --dev, with an existing admin key.
func startProduction(t *testing.T, args ...string) (s *service, admin *gamelift.Client) {
	t.Helper()
	s = newService(t, append(args, "--dev=false")...)
	id, secret := s.key("admin")
	s.start()
	return s, s.apiWith(id, secret)
}

// key makes an access key with the command line, also while the service runs.
func (s *service) key(role string) (id, secret string) {
	s.t.Helper()
	out := s.command("keys", "create", "--data", s.data, "--role", role, "--format", "env")
	found := regexp.MustCompile(`AWS_ACCESS_KEY_ID=(\S+)\n.*AWS_SECRET_ACCESS_KEY=(\S+)`).FindStringSubmatch(out)
	if found == nil {
		s.t.Fatalf("no key in %q", out)
	}
	return found[1], found[2]
}

func (s *service) command(args ...string) string {
	s.t.Helper()
	out, err := s.commandFails(args...)
	if err != nil {
		s.t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// commandFails is command for a command that may fail.
func (s *service) commandFails(args ...string) (string, error) {
	cmd := exec.Command(musterBinary, args...)
	cmd.Env = cleanEnvironment("HOME=" + s.t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestAccessKeysAndRoles(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t)
	ctx := t.Context()
	location := "custom-home"
	_, err := admin.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: &location})
	must(t, err)
	fleet, err := admin.CreateFleet(ctx, &gamelift.CreateFleetInput{Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: &location}}})
	must(t, err)
	fleetID := fleet.FleetAttributes.FleetId

	create := func(api *gamelift.Client) error {
		_, err := api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-other")})
		return err
	}
	play := func(api *gamelift.Client) error { // gets as far as the missing server process
		_, err := api.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{FleetId: fleetID, Location: &location, MaximumPlayerSessionCount: aws.Int32(1)})
		if isError[*types.FleetCapacityExceededException](err) {
			return nil
		}
		return err
	}
	look := func(api *gamelift.Client) error {
		_, err := api.DescribeFleetAttributes(ctx, &gamelift.DescribeFleetAttributesInput{})
		return err
	}
	token := func(api *gamelift.Client) error { // gets as far as the missing compute
		_, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: fleetID, ComputeName: aws.String("nobody")})
		if isError[*types.NotFoundException](err) {
			return nil
		}
		return err
	}
	for _, c := range []struct {
		role                      string
		create, play, look, token bool
	}{
		{"backend", false, true, true, true},
		{"client", false, true, false, false},
		{"readonly", false, false, true, false},
	} {
		api := s.apiWith(s.key(c.role)) // made while the service runs, which notices within seconds
		waittest.Until(t, "the new key to be known", func() bool { return !hasCode(look(api), "UnrecognizedClientException") })
		for what, do := range map[string]struct {
			call    func(*gamelift.Client) error
			allowed bool
		}{"create a location": {create, c.create}, "create a game session": {play, c.play}, "look at fleets": {look, c.look}, "get a token": {token, c.token}} {
			err := do.call(api)
			switch {
			case do.allowed && err != nil:
				t.Errorf("%s may %s: %v", c.role, what, err)
			case !do.allowed && !isError[*types.UnauthorizedException](err) && !hasCode(err, "AccessDeniedException"):
				t.Errorf("%s may not %s: got %v", c.role, what, err)
			}
		}
	}

	id, secret := s.key("backend")
	waittest.Until(t, "the new key to be known", func() bool { return look(s.apiWith(id, secret)) == nil })
	refused(t, "a wrong secret", look(s.apiWith(id, secret+"x")), "InvalidSignatureException")
	refused(t, "an unknown key", look(s.apiWith("MUSTAAAAAAAAAAAAAAAA", secret)), "UnrecognizedClientException")
	refused(t, "no signature", look(gamelift.New(gamelift.Options{Region: region, BaseEndpoint: aws.String(s.url()),
		Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1})), "MissingAuthenticationTokenException")
	who, err := sts.New(sts.Options{Region: region, BaseEndpoint: aws.String(s.url()),
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, "")}).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil || !strings.HasPrefix(aws.ToString(who.Arn), "arn:aws:") {
		t.Errorf("who am I: got %+v, %v", who, err)
	}
	must(t, look(s.apiWith(id, secret)))
	s.command("keys", "revoke", "--data", s.data, id)
	waittest.Until(t, "the revoked key to be refused", func() bool { return look(s.apiWith(id, secret)) != nil })
}

func hasCode(err error, code string) bool {
	api, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	return ok && api.ErrorCode() == code
}

// A clock that is wrong by more than five minutes is refused, with a time that lets SDKs correct themselves.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	id, secret := s.key("readonly")
	s.start()
	c := newCLI(s, "AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret)
	c.ok("list-fleets")
	cmd := exec.Command("faketime", "-f", "-10m", debianAWS, "--endpoint-url", s.url(), "--region", region, "gamelift", "list-fleets")
	cmd.Env = c.env
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "InvalidSignatureException") {
		t.Errorf("ten minutes late: got %v\n%s", err, out)
	}
}

// A profile written by muster aws-profile works with a CLI that reads endpoints from profiles, and with Debian's if the endpoint is
// named.
func TestAWSProfile(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	home := t.TempDir()
	write := exec.Command(musterBinary, "aws-profile", "muster-test", "--data", s.data, "--public-url", s.url())
	write.Env = cleanEnvironment("HOME=" + home)
	if out, err := write.CombinedOutput(); err != nil || !strings.Contains(string(out), "2.13") {
		t.Fatalf("aws-profile: %v, or no warning of old CLIs:\n%s", err, out)
	}
	s.start()
	cmd := exec.Command(debianAWS, "--profile", "muster-test", "--endpoint-url", s.url(), "gamelift", "list-fleets")
	cmd.Env = cleanEnvironment("HOME="+home, "AWS_PAGER=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(home + "/.aws/credentials"); err != nil {
		t.Error(err)
	}
}

// A game server that signs its connection with an access key instead of a token.
func TestServerSDKWithAccessKey(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t)
	id, secret := s.key("admin")
	ctx := t.Context()
	p := &place{service: s, location: "custom-home", compute: "DesktopPC"}
	_, err := admin.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: &p.location})
	must(t, err)
	fleet, err := admin.CreateFleet(ctx, &gamelift.CreateFleetInput{Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: &p.location}}})
	must(t, err)
	p.fleet = *fleet.FleetAttributes.FleetId
	_, err = admin.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &p.fleet, ComputeName: &p.compute, IpAddress: aws.String("127.0.0.1"), Location: &p.location})
	must(t, err)

	server := p.startSDKServer(sdkOptions{env: []string{
		"GAMELIFT_REGION=us-east-1", "GAMELIFT_ACCESS_KEY=" + id, "GAMELIFT_SECRET_KEY=" + secret}})
	server.must("init")
	server.must("ready", "7777")
	// The SDK receives nothing while it switches to a new connection, so the service requests none while the signature is valid: a game
	// session that is created right after the process became ready begins at once.
	s.client = admin
	p.createGameSession(2)
	server.untilEvent("start", 1)
	server.must("activate")
	if strings.Contains(server.logs.String(), "redundant") {
		t.Error("the server was told to change over although its signature is fresh")
	}
	server.must("ending")

	wrong := p.startSDKServer(sdkOptions{env: []string{
		"GAMELIFT_REGION=us-east-1", "GAMELIFT_ACCESS_KEY=" + id, "GAMELIFT_SECRET_KEY=wrong" + secret}})
	wrong.begin("init")
	wrong.until("Response body is: forbidden")
}

// A token that is about to expire is replaced over the connection, and nothing is lost.
func TestTokenIsRefreshed(t *testing.T) {
	t.Parallel()
	p := startService(t, "--virtual-clock", "--token-lifetime", "10m").prepare()
	server, id := p.hosting(sdkOptions{}, 2)
	p.advance(8*time.Minute + 30*time.Second) // a quarter of its life before the end, less a spread of up to a quarter of that
	server.until("Mark websocket connection as redundant")
	psess := p.mustReserve(id, "p1")
	server.must("accept", psess)
	if server.countEvents("start") != 1 || server.countEvents("terminate") != 0 {
		t.Error("the new connection started or ended the session again")
	}
	server.must("ending")
}

// When the compute is deregistered, its token becomes invalid and its servers are asked to end.
func TestDeregisteredCompute(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	server, id := p.hosting(sdkOptions{}, 2)
	_, err := p.api().DeregisterCompute(t.Context(), &gamelift.DeregisterComputeInput{FleetId: &p.fleet, ComputeName: &p.compute})
	must(t, err)
	server.untilEvent("terminate", 1)
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	_, err = linkclient.Dial(t.Context(), linkclient.Options{URL: p.ws(), Process: "late", Compute: p.compute, Fleet: p.fleet, Token: p.token})
	if status, ok := errors.AsType[*linkclient.RefusedError](err); !ok || status.Status != 403 {
		t.Errorf("a void token: got %v, want 403", err)
	}
}
