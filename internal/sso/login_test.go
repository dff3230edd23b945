package sso

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	domaingrants "github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/identity"
)

// program acts as the AWS CLI during aws login, with its key.
type program struct {
	*desk
	key *ecdsa.PrivateKey
}

func newProgram(x *desk) *program {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		x.Fatal(err)
	}
	return &program{x, key}
}

func encoded(x any) string {
	text, _ := json.Marshal(x)
	return base64.RawURLEncoding.EncodeToString(text)
}

// proof returns the program's proof for a request, with changes to its header and its claims.
func (p *program) proof(change func(head, claims object)) string {
	public, err := p.key.PublicKey.Bytes()
	if err != nil {
		p.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	head := object{"typ": "dpop+jwt", "alg": "ES256", "jwk": object{"kty": "EC", "crv": "P-256", "x": part(public[1:33]), "y": part(public[33:])}}
	claims := object{"htm": "POST", "htu": p.url + loginTokenPath, "iat": p.engine.Now().Unix(), "jti": rand.Text()}
	if change != nil {
		change(head, claims)
	}
	text := encoded(head) + "." + encoded(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	if err != nil {
		p.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + part(signature)
}

// ask asks for tokens with a proof; it returns the answer, and the type and code of the error.
func (p *program) ask(in object, proof string) (out object, kind string) {
	p.Helper()
	body, _ := json.Marshal(in)
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+loginTokenPath, bytes.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	if proof != "" {
		r.Header.Set("DPoP", proof)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		p.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		kind = answer.Header.Get("X-Amzn-Errortype") + " " + out["error"].(string)
	}
	return out, kind
}

func loginOf(clientID, redirect string, changes map[string]string) string {
	q := url.Values{"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "state": {"the state"}, "code_challenge_method": {"SHA-256"}, "scope": {"openid"}, "code_challenge": {challenge(verifier)}}
	for k, v := range changes {
		q.Set(k, v)
	}
	return loginAuthorizePath + "?" + q.Encode()
}

const loginBack = "http://127.0.0.1:4321/oauth/callback"

func (p *program) loginCode(role string) string {
	p.Helper()
	answer, text := p.approve("ann", loginOf(sameDevice, loginBack, nil), "approve", url.Values{"role": {role}})
	to, err := answer.Location()
	if err != nil || to.Host != "127.0.0.1:4321" || to.Query().Get("state") != "the state" {
		p.Fatalf("%d %v %s", answer.StatusCode, to, text)
	}
	return to.Query().Get("code")
}

func loginAsksOf(code string) object {
	return object{"clientId": sameDevice, "grantType": codeGrant, "code": code, "redirectUri": loginBack, "codeVerifier": verifier}
}

// aws login gets credentials of the role that the person has chosen, valid for 15 minutes. It renews them with its key alone while the session lasts.
func TestLogin(t *testing.T) {
	p := newProgram(newDesk(t))
	out, kind := p.ask(loginAsksOf(p.loginCode("readonly")), p.proof(nil))
	if kind != "" || out["tokenType"] != "aws_sigv4" || out["expiresIn"] != loginLife.Seconds() {
		t.Fatalf("%s %v", kind, out)
	}
	access := out["accessToken"].(object)
	key, err := p.keys.With(access["accessKeyId"].(string), access["sessionToken"].(string), "192.0.2.1")
	if err != nil || key.Role != identity.ReadOnly || key.Secret != access["secretAccessKey"] {
		t.Errorf("credentials: %v %v", key, err)
	}
	parts := strings.Split(out["idToken"].(string), ".")
	var claims object
	if len(parts) != 3 || readPart(parts[1], &claims) != nil || !strings.HasPrefix(claims["sub"].(string), "arn:aws:iam::000000000000:user/readonly/") {
		t.Errorf("id token: %v", claims)
	}

	renew := object{"clientId": sameDevice, "grantType": refreshGrant, "refreshToken": out["refreshToken"]}
	p.pass(time.Hour)
	again, kind := p.ask(renew, p.proof(nil))
	if kind != "" || again["idToken"] != nil {
		t.Errorf("renew: %s %v", kind, again)
	}
	if _, kind := p.ask(renew, newProgram(p.desk).proof(nil)); kind != "AccessDeniedException TOKEN_EXPIRED" {
		t.Errorf("another key: %s", kind)
	}
	if _, kind := p.ask(object{"clientId": crossDevice, "grantType": refreshGrant, "refreshToken": out["refreshToken"]}, p.proof(nil)); kind != "AccessDeniedException TOKEN_EXPIRED" {
		t.Errorf("another client: %s", kind)
	}
	p.mu.Lock()
	ann := p.live["ann"]
	ann.Roles = nil
	p.live["ann"] = ann
	p.mu.Unlock()
	if _, kind := p.ask(renew, p.proof(nil)); kind != "AccessDeniedException INSUFFICIENT_PERMISSIONS" {
		t.Errorf("a person who has lost the role: %s", kind)
	}
	p.mu.Lock()
	delete(p.live, "ann")
	p.mu.Unlock()
	if _, kind := p.ask(renew, p.proof(nil)); kind != "AccessDeniedException TOKEN_EXPIRED" {
		t.Errorf("an ended session: %s", kind)
	}
}

// Without a browser on the machine the person copies the code, with its state, from a page.
func TestRemoteLogin(t *testing.T) {
	p := newProgram(newDesk(t))
	redirect := p.url + confirmationPath
	answer, text := p.approve("ann", loginOf(crossDevice, redirect, nil), "approve", url.Values{"role": {"backend"}})
	found := regexp.MustCompile(`<code>([^<]+)</code>`).FindStringSubmatch(text)
	if answer.StatusCode != 200 || found == nil {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	copied, err := base64.StdEncoding.DecodeString(html.UnescapeString(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	q, err := url.ParseQuery(string(copied))
	if err != nil || q.Get("state") != "the state" || len(q.Get("code")) > loginCodeMax {
		t.Fatalf("%s %v", copied, err)
	}
	in := object{"clientId": crossDevice, "grantType": codeGrant, "code": q.Get("code"), "redirectUri": redirect, "codeVerifier": verifier}
	if out, kind := p.ask(in, p.proof(nil)); kind != "" {
		t.Errorf("%s %v", kind, out)
	}
	if _, kind := p.ask(in, p.proof(nil)); kind != "AccessDeniedException AUTHCODE_EXPIRED" || p.isLive("ann") {
		t.Errorf("again: %s, the session lives: %v", kind, p.isLive("ann"))
	}
}

// The time of a cluster may differ from the clocks of its machines, with which the clock of the program agrees.
func TestLoginInATimeThatIsAhead(t *testing.T) {
	p := newProgram(newDesk(t))
	p.door.clock = time.Now
	p.pass(time.Hour)
	now := func(_, claims object) { claims["iat"] = time.Now().Unix() }
	proof := p.proof(now)
	out, kind := p.ask(loginAsksOf(p.loginCode("readonly")), proof)
	if kind != "" {
		t.Fatalf("%s %v", kind, out)
	}
	renew := object{"clientId": sameDevice, "grantType": refreshGrant, "refreshToken": out["refreshToken"]}
	if _, kind := p.ask(renew, proof); kind != "ValidationException INVALID_REQUEST" {
		t.Errorf("the same proof again: %s", kind)
	}
	if _, kind := p.ask(renew, p.proof(func(_, claims object) { claims["iat"] = time.Now().Add(time.Hour).Unix() })); kind != "ValidationException INVALID_REQUEST" {
		t.Errorf("a proof by the time of the cluster: %s", kind)
	}
	if _, kind := p.ask(renew, p.proof(func(_, claims object) { claims["iat"] = time.Now().Add(proofSkew - time.Second).Unix() })); kind != "" {
		t.Errorf("a clock that is ahead: %s", kind)
	}
}

// Proofs, codes and pages with faults are refused.
func TestAttackLogins(t *testing.T) {
	p := newProgram(newDesk(t))
	in := loginAsksOf("x")
	for name, proof := range map[string]string{
		"none":          "",
		"no JWT":        "x",
		"two parts":     "e30.e30",
		"no algorithm":  p.proof(func(head, _ object) { head["alg"] = "none" }),
		"HS256":         p.proof(func(head, _ object) { head["alg"] = "HS256" }),
		"another type":  p.proof(func(head, _ object) { head["typ"] = "JWT" }),
		"no key":        p.proof(func(head, _ object) { delete(head, "jwk") }),
		"another curve": p.proof(func(head, _ object) { head["jwk"].(object)["crv"] = "P-384" }),
		"no point":      p.proof(func(head, _ object) { head["jwk"].(object)["x"] = "AQ" }),
		"another's key": p.proof(func(head, _ object) {
			head["jwk"] = func() any {
				var h object
				_ = readPart(strings.Split(newProgram(p.desk).proof(nil), ".")[0], &h)
				return h["jwk"]
			}()
		}),
		"another method":    p.proof(func(_, claims object) { claims["htm"] = "GET" }),
		"another path":      p.proof(func(_, claims object) { claims["htu"] = p.url + "/token" }),
		"another service":   p.proof(func(_, claims object) { claims["htu"] = "https://other.example/v1/token" }),
		"old":               p.proof(func(_, claims object) { claims["iat"] = p.engine.Now().Add(-proofSkew - time.Minute).Unix() }),
		"of the future":     p.proof(func(_, claims object) { claims["iat"] = p.engine.Now().Add(proofSkew + time.Minute).Unix() }),
		"no id":             p.proof(func(_, claims object) { delete(claims, "jti") }),
		"a wrong signature": p.proof(nil)[:20] + "A" + p.proof(nil)[21:],
		"long":              strings.Repeat("x", proofMax+1),
	} {
		if _, kind := p.ask(in, proof); kind != "ValidationException INVALID_REQUEST" {
			t.Errorf("%s: %s", name, kind)
		}
	}
	if _, kind := p.ask(in, p.proof(nil)); kind != "AccessDeniedException AUTHCODE_EXPIRED" {
		t.Errorf("no code: %s", kind)
	}
	for name, change := range map[string]func(object){
		"another verifier": func(x object) { x["codeVerifier"] = strings.Repeat("x", 43) },
		"no verifier":      func(x object) { delete(x, "codeVerifier") },
		"another redirect": func(x object) { x["redirectUri"] = "http://127.0.0.1:4322/oauth/callback" },
		"another client":   func(x object) { x["clientId"] = crossDevice },
	} {
		x := loginAsksOf(p.loginCode("backend"))
		change(x)
		if _, kind := p.ask(x, p.proof(nil)); kind != "AccessDeniedException AUTHCODE_EXPIRED" {
			t.Errorf("%s: %s", name, kind)
		}
	}
	old := p.loginCode("backend")
	p.pass(codeLife)
	if _, kind := p.ask(loginAsksOf(old), p.proof(nil)); kind != "AccessDeniedException AUTHCODE_EXPIRED" {
		t.Errorf("an old code: %s", kind)
	}
	for name, path := range map[string]string{
		"another client":         loginOf("arn:aws:signin:::devtools/other", loginBack, nil),
		"another site":           loginOf(sameDevice, "http://evil.example/oauth/callback", nil),
		"another service":        loginOf(crossDevice, "http://evil.example/v1/sessions/confirmation", nil),
		"another path of ours":   loginOf(crossDevice, p.url+"/device", nil),
		"a code of other length": loginOf(sameDevice, loginBack, map[string]string{"code_challenge": "abc"}),
		"a plain challenge":      loginOf(sameDevice, loginBack, map[string]string{"code_challenge_method": "plain"}),
		"no state":               loginOf(sameDevice, loginBack, map[string]string{"state": ""}),
		"two clients":            loginOf(sameDevice, loginBack, nil) + "&client_id=x",
	} {
		if answer, _ := p.browse("ann", path, nil); answer.StatusCode != 400 {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
	answer, _ := p.approve("ann", loginOf(sameDevice, loginBack, nil), "approve", url.Values{"role": {"admin"}})
	if _, err := answer.Location(); err == nil || answer.StatusCode != 403 {
		t.Errorf("a role that the person does not have: %d", answer.StatusCode)
	}
	answer, _ = p.approve("ann", loginOf(sameDevice, loginBack, nil), "deny", nil)
	if to, err := answer.Location(); err != nil || to.Query().Get("error") != "access_denied" {
		t.Errorf("denied: %v", to)
	}
}

// An intercepted proof is refused a second time, even with the refresh token and at another node. No session can fill the memory of used proofs.
func TestAttackReplayedProofs(t *testing.T) {
	p := newProgram(newDesk(t))
	first := p.proof(nil)
	out, kind := p.ask(loginAsksOf(p.loginCode("readonly")), first)
	if kind != "" {
		t.Fatal(kind)
	}
	renew := object{"clientId": sameDevice, "grantType": refreshGrant, "refreshToken": out["refreshToken"]}
	if _, kind := p.ask(renew, first); kind != "ValidationException INVALID_REQUEST" {
		t.Errorf("the proof of the code with the refresh token: %s", kind)
	}
	second := p.proof(nil)
	if _, kind := p.ask(renew, second); kind != "" {
		t.Errorf("a new proof: %s", kind)
	}
	for range 3 {
		if _, kind := p.ask(renew, second); kind != "ValidationException INVALID_REQUEST" {
			t.Errorf("the same request again: %s", kind)
		}
	}
	// The id alone does not identify a proof: another key may have used it.
	named := func(head, claims object) { claims["jti"] = "the same" }
	if _, kind := p.ask(renew, p.proof(named)); kind != "" {
		t.Errorf("an id of this key: %s", kind)
	}
	other := newProgram(p.desk)
	if _, kind := other.ask(loginAsksOf(other.loginCode("readonly")), other.proof(named)); kind != "" {
		t.Errorf("the same id of another key: %s", kind)
	}
	// A proof is remembered as long as it would be accepted.
	ahead := p.proof(func(_, claims object) { claims["iat"] = p.engine.Now().Add(proofSkew - time.Second).Unix() })
	if _, kind := p.ask(renew, ahead); kind != "" {
		t.Errorf("a clock that is ahead: %s", kind)
	}
	p.pass(2*proofSkew - 2*time.Second)
	if _, kind := p.ask(renew, ahead); kind != "ValidationException INVALID_REQUEST" {
		t.Errorf("again, just before it is too old: %s", kind)
	}
	throttled := 0
	for range domaingrants.ProofsOfSession + 10 {
		if _, kind := p.ask(renew, p.proof(nil)); strings.HasPrefix(kind, "TooManyRequestsError") {
			throttled++
		} else if kind != "" {
			t.Fatal(kind)
		}
	}
	if throttled < 10 || throttled > 20 {
		t.Errorf("%d of %d proofs of one session were too many", throttled, domaingrants.ProofsOfSession+10)
	}
	p.pass(2 * domaingrants.OnceLifeMax)
	if _, kind := p.ask(renew, p.proof(nil)); kind != "" {
		t.Errorf("later: %s", kind)
	}
}
