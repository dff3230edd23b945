package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// clientAt returns a client with a given loopback address, so that the service sees clients at several addresses.
func clientAt(ip string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 100}}
}

func (s *service) apiAt(ip, key, secret string) *gamelift.Client {
	return gamelift.New(gamelift.Options{
		Region: region, BaseEndpoint: aws.String(s.url()), Credentials: credentials.NewStaticCredentialsProvider(key, secret, ""),
		RetryMaxAttempts: 1, HTTPClient: wholeAnswers{clientAt(ip), nil},
	})
}

// signedBy signs a request as AWS clients do.
func signedBy(t *testing.T, r *http.Request, body, key, secret string) *http.Request {
	t.Helper()
	hash := sha256.Sum256([]byte(body))
	must(t, v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, r, hex.EncodeToString(hash[:]), "gamelift", region, time.Now()))
	return r
}

// wrongSignIn is a request with invalid credentials that is sent repeatedly.
type wrongSignIn struct {
	name           string
	door, reason   string // labels of the metric
	unlimited      bool   // it tells nothing about a secret, so it is only counted
	request        func() *http.Request
	slowed, wanted int // answers that were throttled, and answers that explained the refusal
}

// send reports whether the answer was a throttling error.
func (w *wrongSignIn) send(client *http.Client) (status int, throttled bool, err error) {
	answer, err := client.Do(w.request())
	if err != nil {
		return 0, false, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.StatusCode == http.StatusTooManyRequests || strings.Contains(string(text), "Rate exceeded"), err
}

const guessed = "guessed-secret-that-must-not-be-logged"

// wrongSignIns returns all kinds of wrong sign-ins at every door.
func wrongSignIns(t *testing.T, p *place, key, partner, operator string) []*wrongSignIn {
	request := func(method, url, body string, headers ...string) *http.Request {
		r, err := http.NewRequest(method, url, strings.NewReader(body))
		must(t, err)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return r
	}
	api := func() *http.Request {
		return request("POST", p.url()+"/", "{}", "X-Amz-Target", "GameLift.ListFleets", "Content-Type", amzMedia)
	}
	flow := func(base, call, token, body string) func() *http.Request {
		return func() *http.Request {
			return request("POST", base+"/playerflow/v1/"+call, body, "Content-Type", jsonMedia, "Authorization", "Bearer "+token)
		}
	}
	link := func(credentials string) func() *http.Request {
		return func() *http.Request {
			return request("GET", p.url()+"/?pID=evil&FleetId="+p.fleet+"&ComputeId="+p.compute+"&sdkVersion=5.2.0&sdkLanguage=Go&"+credentials, "", upgrade()...)
		}
	}
	explain := func() *http.Request { return request("GET", p.url()+"/operator/v1/explain/placement/x", "") }
	exchange := fmt.Sprintf(`{"auth_token":%q,"process_id":"x","game_session_id":"arn:aws:gamelift:us-east-1::gamesession/x"}`, guessed)
	return []*wrongSignIn{
		{name: "a wrong signature", door: "api", reason: "wrong_secret", request: func() *http.Request { return signedBy(t, api(), "{}", key, guessed) }},
		{name: "an unknown key", door: "api", reason: "unknown_key", request: func() *http.Request { return signedBy(t, api(), "{}", "MUSTAAAAAAAAAAAAAAAA", guessed) }},
		{name: "no signature", door: "api", reason: "missing", unlimited: true, request: api},
		{name: "an operator's wrong signature", door: "operator", reason: "wrong_secret", request: func() *http.Request { return signedBy(t, explain(), "", key, guessed) }},
		{name: "a script's wrong secret", door: "scripts", reason: "wrong_secret", request: func() *http.Request {
			return request("POST", p.url()+"/session/v1/SearchSessions", "{}", "Content-Type", jsonMedia, "Authorization", "Bearer "+key+"."+guessed)
		}},
		{name: "a wrong secret at the metrics", door: "metrics", reason: "wrong_secret", request: func() *http.Request {
			return request("GET", p.url()+"/metrics", "", "Authorization", "Basic "+basic(key, guessed))
		}},
		{name: "a player's token", door: "players", reason: "wrong_token", request: flow(p.url(), "player/Session.GetFlow", guessed, "{}")},
		{name: "a player's login", door: "players", reason: "wrong_token", request: flow(p.url(), "player/Session.Login", "", `{"provider":"backend","token":"plt_`+guessed+`.YQ"}`)},
		{name: "a partner's wrong secret", door: "partners", reason: "wrong_secret", request: flow(partner, "partner/Flow.GetPlayers", key+"."+guessed, `{"player_ids":["x"]}`)},
		{name: "a game's token", door: "partners", reason: "wrong_token", request: flow(partner, "partner/Game.Ready", "pgs_gi-00000000-0000-4000-8000-000000000000_"+guessed, "{}")},
		{name: "an exchange", door: "partners", reason: "wrong_token", request: flow(partner, "partner/Server.Exchange", "", exchange)},
		{name: "an operator's wrong secret", door: "player_operators", reason: "wrong_secret", request: flow(operator, "operator/Operator.GetConfig", key+"."+guessed, "{}")},
		{name: "a compute's token", door: "game_servers", reason: "wrong_token", request: link("Authorization=" + guessed)},
		{name: "a game server's signature", door: "game_servers", reason: "wrong_secret",
			request: link("Authorization=SigV4&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + key +
				"/20260101/us-east-1/gamelift/aws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Signature=" + strings.Repeat("0", 64))},
		{name: "a confirmation", door: "webhook_confirmations", reason: "wrong_token",
			request: func() *http.Request {
				return request("GET", p.url()+"/sns/?Action=ConfirmSubscription&TopicArn=x&Token="+guessed, "")
			}},
	}
}

// Thousands of wrong sign-ins of every kind come from one address, with the key of an honest client. The service counts and slows them,
// and logs them within limits. It serves the honest client all the time: at the same address, where it had signed in before, and
// at another one, where it had not.
func TestAttackWrongSignIns(t *testing.T) {
	t.Parallel()
	partner, operator := porttest.Free(t), porttest.Free(t)
	s := newService(t, "--dev=false", "--player-flow", "--player-logins-per-address", "0", "--partner-listen", partner, "--operator-listen", operator)
	key, secret := s.key("admin")
	s.start()
	same := s.apiAt("127.0.0.1", key, secret)
	s.client = same
	p := s.prepare()

	attackers, done := clientAt("127.0.0.1"), make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	kinds := wrongSignIns(t, p, key, "http://"+partner, "http://"+operator)
	const each = 1000
	began := time.Now()
	var attack, honest sync.WaitGroup
	for _, w := range kinds {
		attack.Go(func() {
			for range each {
				status, throttled, err := w.send(attackers)
				switch {
				case ctx.Err() != nil:
					return
				case err != nil: // its connection was ended
				case throttled:
					w.slowed++
				case status < 400:
					t.Errorf("%s: status %d", w.name, status)
					return
				default:
					w.wanted++
				}
			}
		})
	}
	for name, api := range map[string]*gamelift.Client{"the same address": same, "another address": s.apiAt("127.0.0.2", key, secret)} {
		honest.Go(func() {
			calls := 0
			for {
				if _, err := api.ListFleets(ctx, &gamelift.ListFleetsInput{}); err != nil {
					t.Errorf("the owner at %s, call %d: %v", name, calls, err)
					return
				}
				calls++
				select {
				case <-done:
					t.Logf("the owner at %s made %d calls", name, calls)
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	attack.Wait()
	took := time.Since(began)
	close(done)
	honest.Wait()

	status, _, metrics := sent(t, "GET", s.url()+"/metrics", "", "Authorization", "Basic "+basic(key, secret))
	if status != http.StatusOK {
		t.Fatalf("metrics: status %d: %s", status, metrics)
	}
	// An address is answered ten failures of players a second, and fewer of all other kinds.
	least := each/2 - 10*int(took.Seconds())
	for _, w := range kinds {
		t.Logf("%s: %d answered, %d slowed", w.name, w.wanted, w.slowed)
		if w.unlimited && w.slowed > 0 || !w.unlimited && w.slowed < least {
			t.Errorf("%s: %d of %d were slowed within %s, want %d", w.name, w.slowed, each, took, least)
		}
		line := fmt.Sprintf(`muster_failed_signins_total{door=%q,reason=%q} `, w.door, w.reason)
		if n := numberAfter(metrics, line); n == 0 {
			t.Errorf("no %q in /metrics", line)
		}
		if slowed := numberAfter(metrics, fmt.Sprintf(`muster_slowed_signins_total{door=%q} `, w.door)); slowed < w.slowed {
			t.Errorf("%s: %d slowed by the metric, %d by the client", w.name, slowed, w.slowed)
		}
	}
	s.untilLogged("sign-in failed")
	log := s.logs.String()
	if n := strings.Count(log, "sign-in failed"); n == 0 || n > 100*(1+int(took.Minutes())) { // each kind has five a minute
		t.Errorf("%d lines of the log tell of %d failures within %s", n, each*len(kinds), took)
	}
	if strings.Contains(log, guessed) || strings.Contains(log, secret) || strings.Contains(log, p.token) {
		t.Error("the log has a secret")
	}
}

// numberAfter returns the whole number after a text; 0 if there is none.
func numberAfter(text, line string) int {
	found := regexp.MustCompile(regexp.QuoteMeta(line) + `(\d+)`).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// An owner who starts at the address of an attacker that uses the same key gets through with the retries that SDKs make.
func TestAttackWrongSignInsBeforeTheOwnersFirst(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	key, secret := s.key("backend")
	s.start()
	wrong, right := s.apiAt("127.0.0.1", key, "wrong"), s.apiAt("127.0.0.1", key, secret)
	list := func(api *gamelift.Client) error {
		_, err := api.ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		return err
	}
	waittest.Until(t, "wrong secrets to be slowed", func() bool { return hasCode(list(wrong), "ThrottlingException") })
	tries := 1
	for ; list(right) != nil; tries++ {
		if tries > 1000 {
			t.Fatal("the owner is locked out")
		}
		if list(wrong) == nil { // slowed, except for one each six seconds
			t.Fatal("a wrong secret is accepted")
		}
	}
	t.Logf("the owner got through with try %d", tries)
	for range 100 {
		_ = list(wrong)
		must(t, list(right))
	}
}
