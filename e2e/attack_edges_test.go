package e2e

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/porttest"
)

// elsewhere returns an address of this machine that is not loopback. A connection to it also comes from it, so the service treats the
// client as another machine.
func elsewhere(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	cannotRun(t, "this machine has no IPv4 address but loopback, so nothing can connect from elsewhere")
	return ""
}

// sent sends a hand-written HTTP request. "Host" in headers sets the Host header.
func sent(t *testing.T, method, url, body string, headers ...string) (status int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	must(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, answer.Header, string(all)
}

const upgradeHeaders = "Connection,Upgrade,Upgrade,websocket,Sec-WebSocket-Version,13,Sec-WebSocket-Key,AAAAAAAAAAAAAAAAAAAAAA=="

func upgrade(more ...string) []string { return append(strings.Split(upgradeHeaders, ","), more...) }

const (
	jsonMedia = "application/json"
	amzMedia  = "application/x-amz-json-1.1"
)

// No door at any port accepts keys or tokens in clear text from other machines.
func TestAttackPlainConnectionsFromElsewhere(t *testing.T) {
	t.Parallel()
	ip := elsewhere(t)
	port := func() string { _, p, _ := net.SplitHostPort(porttest.Free(t)); return p }
	main, partner, operator := port(), port(), port()
	s, admin := startProductionAt(t, main, "--listen", "0.0.0.0:"+main, "--public-url", "https://muster.test", "--player-flow",
		"--partner-listen", "0.0.0.0:"+partner, "--operator-listen", "0.0.0.0:"+operator)
	id, secret := s.key("admin")
	token := id + "." + secret
	url := func(host, port string) string { return "http://" + net.JoinHostPort(host, port) }

	doors := []struct {
		name, method, port, path, body string
		headers                        []string
	}{
		{"the API", "POST", main, "/", "{}", []string{"X-Amz-Target", "GameLift.ListFleets", "Content-Type", amzMedia}},
		{"the API in CBOR", "POST", main, "/service/GameLift/operation/ListFleets", "\xa0", []string{"Smithy-Protocol", "rpc-v2-cbor", "Content-Type", "application/cbor"}},
		{"STS", "POST", main, "/", "Action=GetCallerIdentity&Version=2011-06-15", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"game servers", "GET", main, "/?pID=p&sdkVersion=5.4.0&sdkLanguage=Go&ComputeId=c&FleetId=fleet-1&Authorization=t", "", upgrade()},
		{"players", "POST", main, "/playerflow/v1/player/Session.Login", "{}", []string{"Content-Type", jsonMedia}},
		{"players' streams", "GET", main, "/playerflow/v1/player/stream", "", upgrade("Sec-WebSocket-Protocol", "playerflow.v1")},
		{"scripts", "POST", main, "/session/v1/SearchSessions", "{}", []string{"Content-Type", jsonMedia, "Authorization", "Bearer " + token}},
		{"metrics", "GET", main, "/metrics", "", []string{"Authorization", "Bearer " + token}},
		{"explanations", "GET", main, "/operator/v1/explain/placement/x", "", nil},
		{"confirmations", "GET", main, "/sns/?Action=ConfirmSubscription&Token=x", "", nil},
		{"anything else", "GET", main, "/", "", nil},
		{"the studio's servers", "POST", partner, "/playerflow/v1/partner/Flow.GetPlayers", `{"player_ids":["ann"]}`, []string{"Content-Type", jsonMedia, "Authorization", "Bearer " + token}},
		{"the studio's streams", "GET", partner, "/playerflow/v1/partner/events", "", upgrade("Authorization", "Bearer "+token)},
		{"operators", "POST", operator, "/playerflow/v1/operator/Operator.Audit", "{}", []string{"Content-Type", jsonMedia, "Authorization", "Bearer " + token}},
	}
	for _, d := range doors {
		for what, more := range map[string][]string{"": nil, ", with a made-up header": {"X-Forwarded-Proto", "https"}} {
			status, _, text := sent(t, d.method, url(ip, d.port)+d.path, d.body, append(d.headers, more...)...)
			if status != http.StatusForbidden || !strings.Contains(text, "TLS only") {
				t.Errorf("%s%s: %d %.300q, want 403 that speaks of TLS", d.name, what, status, text)
			}
		}
		if status, _, text := sent(t, d.method, url("127.0.0.1", d.port)+d.path, d.body, d.headers...); strings.Contains(text, "TLS only") {
			t.Errorf("%s from this machine: %d %.300q", d.name, status, text)
		}
	}
	if status, _, _ := sent(t, "GET", url(ip, main)+"/healthz", ""); status != http.StatusOK {
		t.Errorf("health from elsewhere: %d, want 200", status)
	}
	_, err := admin.ListFleets(t.Context(), &gamelift.ListFleetsInput{})
	must(t, err) // from this machine
	far := gamelift.New(gamelift.Options{Region: region, BaseEndpoint: aws.String(url(ip, main)), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, "")})
	if _, err := far.ListFleets(t.Context(), &gamelift.ListFleetsInput{}); !hasCode(err, "AccessDeniedException") || !strings.Contains(err.Error(), "https://") {
		t.Errorf("an SDK is told %v, want AccessDeniedException that names https", err)
	}
	s.untilLogged("request refused")
	if strings.Contains(s.logs.String(), secret) {
		t.Error("the log holds a secret")
	}
}

// startProductionAt is startProduction at a port of 127.0.0.1 that the arguments bind.
func startProductionAt(t *testing.T, port string, args ...string) (*service, *gamelift.Client) {
	t.Helper()
	s := newService(t, append(args, "--dev=false")...)
	s.address = net.JoinHostPort("127.0.0.1", port)
	id, secret := s.key("admin")
	s.start()
	return s, s.apiWith(id, secret)
}

// The service trusts only named proxies, and only what they report about their own client.
func TestAttackForwardedHeaders(t *testing.T) {
	t.Parallel()
	ip := elsewhere(t)
	_, port, _ := net.SplitHostPort(porttest.Free(t))
	s, _ := startProductionAt(t, port, "--listen", "0.0.0.0:"+port, "--public-url", "https://muster.test", "--trusted-proxies", ip)
	id, secret := s.key("admin")
	at := "http://" + net.JoinHostPort(ip, port) + "/metrics"
	key := []string{"Authorization", "Basic " + basic(id, secret)}
	for _, c := range []struct {
		said string
		want int
	}{{"https", 200}, {"", 200}, {"http", 403}, {"https, http", 403}, {"ftp", 403}} {
		headers := key
		if c.said != "" {
			headers = append([]string{"X-Forwarded-Proto", c.said}, key...)
		}
		status, header, text := sent(t, "GET", at, "", headers...)
		if status != c.want {
			t.Errorf("the proxy says %q: %d %.200s, want %d", c.said, status, text, c.want)
		}
		if hsts := header.Get("Strict-Transport-Security"); (hsts != "") != (c.want == 200) {
			t.Errorf("the proxy says %q: Strict-Transport-Security %q", c.said, hsts)
		}
	}
}

// Without TLS, the service refuses keys that are sent in clear text and unsigned bodies, even if no setting requires TLS.
func TestAttackCleartextWithoutRequireTLS(t *testing.T) {
	t.Parallel()
	ip := elsewhere(t)
	_, port, _ := net.SplitHostPort(porttest.Free(t))
	s, _ := startProductionAt(t, port, "--listen", "0.0.0.0:"+port)
	id, secret := s.key("readonly")
	far, near := "http://"+net.JoinHostPort(ip, port), s.url()
	if status, _, text := sent(t, "GET", far+"/metrics", "", "Authorization", "Basic "+basic(id, secret)); status != 403 || !strings.Contains(text, "without TLS") {
		t.Errorf("a key at /metrics: %d %s", status, text)
	}
	if status, _, text := sent(t, "GET", near+"/metrics", "", "Authorization", "Basic "+basic(id, secret)); status != 200 {
		t.Errorf("the same from this machine: %d %s", status, text)
	}
	for at, want := range map[string]int{far: 403, near: 200} {
		status, text := sentUnsigned(t, at, id, secret)
		if status != want || want == 403 && !strings.Contains(text, "UNSIGNED-PAYLOAD") {
			t.Errorf("an unsigned body to %s: %d %s, want %d", at, status, text, want)
		}
	}
}

// A web page in a developer's browser cannot reach a service that requires no credentials: neither across sites, nor
// under its own host name that it makes resolve to this machine.
func TestAttackWebPages(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow", "--virtual-clock", "--player-origins", "https://play.example.com")
	_, port, _ := net.SplitHostPort(s.address)
	doors := []struct {
		name, method, path, body string
		headers                  []string
	}{
		{"the API", "POST", "/", `{"LocationName":"custom-web"}`, []string{"X-Amz-Target", "GameLift.CreateLocation", "Content-Type", amzMedia}},
		{"the API in CBOR", "POST", "/service/GameLift/operation/CreateLocation", "\xa1\x6cLocationName\x6acustom-web", []string{"Content-Type", "application/cbor"}},
		{"STS", "POST", "/", "Action=GetCallerIdentity", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"game servers", "GET", "/?pID=p&sdkVersion=5.4.0&sdkLanguage=Go&ComputeId=c&FleetId=fleet-1&Authorization=t", "", upgrade()},
		{"players", "POST", "/playerflow/v1/player/Session.Login", `{"provider":"dev","token":"{\"player_id\":\"ann\"}"}`, []string{"Content-Type", jsonMedia}},
		{"players' streams", "GET", "/playerflow/v1/player/stream", "", upgrade("Sec-WebSocket-Protocol", "playerflow.v1")},
		{"the studio's servers", "POST", "/playerflow/v1/partner/Flow.GetPlayers", `{"player_ids":["ann"]}`, []string{"Content-Type", jsonMedia}},
		{"the studio's streams", "GET", "/playerflow/v1/partner/events", "", upgrade("Sec-WebSocket-Protocol", "playerflow.events.v1")},
		{"operators of player flow", "POST", "/playerflow/v1/operator/Operator.Audit", `{}`, []string{"Content-Type", jsonMedia}},
		{"scripts", "POST", "/session/v1/CreatePlayerId", "{}", []string{"Content-Type", jsonMedia}},
		{"scripts' streams", "GET", "/session/v1/events?clientId=x", "", nil},
		{"operators", "GET", "/operator/v1/explain/placement/x", "", nil},
		{"metrics", "GET", "/metrics", "", nil},
		{"the clock", "GET", "/dev/clock", "", nil},
		{"the clock's hands", "POST", "/dev/clock/advance", `{"seconds":1}`, []string{"Content-Type", jsonMedia}},
		{"health", "GET", "/healthz", "", nil},
	}
	pages := map[string][]string{
		"a page of another site":             {"Origin", "https://evil.example"},
		"the same, as browsers add":          {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"a GET of another site":              {"Sec-Fetch-Site", "cross-site"},
		"a page of another port":             {"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"},
		"a page in a frame that hides it":    {"Origin", "null"},
		"a rebound name":                     {"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port, "Sec-Fetch-Site", "same-origin"},
		"a rebound name, without an origin":  {"Host", "evil.example:" + port},
		"an address that means this machine": {"Host", "0.0.0.0:" + port},
		"a name that begins like an address": {"Host", "127.0.0.1.evil.example:" + port},
	}
	for _, d := range doors {
		for what, headers := range pages {
			status, _, text := sent(t, d.method, s.url()+d.path, d.body, append(headers, d.headers...)...)
			if status != http.StatusForbidden || !strings.Contains(text, "development mode") {
				t.Errorf("%s, %s: %d %.200q, want 403", d.name, what, status, text)
			}
		}
	}
	// A type that a page may send without a preflight request does not count as CBOR or JSON, from any client.
	for _, d := range doors {
		if d.method != "POST" || d.name == "STS" {
			continue
		}
		for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
			var headers []string
			for i := 0; i+1 < len(d.headers); i += 2 {
				if d.headers[i] != "Content-Type" {
					headers = append(headers, d.headers[i], d.headers[i+1])
				}
			}
			if media != "" {
				headers = append(headers, "Content-Type", media)
			}
			if status, _, text := sent(t, "POST", s.url()+d.path, d.body, headers...); status != http.StatusUnsupportedMediaType && status != http.StatusBadRequest {
				t.Errorf("%s as %q: %d %.200q, want 415 or 400", d.name, media, status, text)
			}
		}
	}
	locations, err := s.api().ListLocations(t.Context(), &gamelift.ListLocationsInput{})
	must(t, err)
	for _, l := range locations.Locations {
		if aws.ToString(l.LocationName) == "custom-web" {
			t.Error("a page has made a location")
		}
	}
	// The allowed page may call as a player, and nothing else.
	named := []string{"Origin", "https://play.example.com", "Sec-Fetch-Site", "cross-site", "Content-Type", jsonMedia}
	login := `{"provider":"dev","token":"{\"player_id\":\"ann\"}"}`
	if status, header, text := sent(t, "POST", s.url()+"/playerflow/v1/player/Session.Login", login, named...); status != 200 || header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("the page that may: %d %s", status, text)
	}
	if status, _, text := sent(t, "POST", s.url()+"/playerflow/v1/partner/Flow.GetPlayers", `{"player_ids":["ann"]}`, named...); status != 403 {
		t.Errorf("the page that may, as a server: %d %s", status, text)
	}
	s.staysHealthy()
}

// The service does not start with a secret that other users of the machine can read, and reports how to fix that.
func TestAttackReadableSecret(t *testing.T) {
	t.Parallel()
	s, _ := startProduction(t)
	s.stop()
	secret := filepath.Join(s.data, "cell.secret")
	for _, c := range []struct {
		path string
		mode os.FileMode
		says string
	}{{secret, 0o644, "chmod 600"}, {secret, 0o606, "chmod 600"}, {s.data, 0o777, "chmod 700"}} {
		before, err := os.Stat(c.path)
		must(t, err)
		must(t, os.Chmod(c.path, c.mode))
		s.launch()
		select {
		case <-s.exited:
		case <-time.After(patience):
			t.Fatalf("mode %o of %s: it goes on", c.mode, c.path)
		}
		if s.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(s.logs.tail(2), c.says) {
			t.Errorf("mode %o of %s: status %d, want 1 and %q", c.mode, c.path, s.cmd.ProcessState.ExitCode(), c.says)
		}
		must(t, os.Chmod(c.path, before.Mode().Perm()))
	}
	must(t, os.Chmod(s.data, 0o755))
	s.start()
	s.untilLogged("every user of this machine can read the journal")
}

// The output that an operator shows to others, in a chat or a bug report, contains no secret.
func TestAttackConfigShowsNoSecrets(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--public-url", "https://ops:hidden@muster.test"}, {"--notify-topics", "arn=https://x.example/hidden"}} {
		args := append([]string{"config", "--notify-events", "https://u:hidden@hooks.example.com/services/hidden?k=hidden",
			"--notify-topics", "arn:aws:sns:us-east-1:000000000000:a=https://hooks.example.com/hidden"}, more...)
		cmd := exec.Command(musterBinary, args...)
		cmd.Env = cleanEnvironment()
		out, _ := cmd.CombinedOutput() // invalid settings are printed and then reported
		if !strings.Contains(string(out), "hooks.example.com") && more == nil || strings.Contains(string(out), "hidden") {
			t.Errorf("%v:\n%s", args, out)
		}
	}
}
