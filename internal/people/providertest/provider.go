// Package providertest is an identity provider for tests. It can also misbehave: tests can change every answer before it is sent.
package providertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Provider is an identity provider on this machine. It signs in every visitor at once, as the person that Person sets.
type Provider struct {
	*httptest.Server
	ClientID, Secret string

	mu       sync.Mutex
	subject  string
	claims   map[string]any // of the person, besides sub
	gone     bool           // refreshes are refused
	down     bool           // every request is answered with 503
	refresh  bool           // refresh tokens are issued
	refreshs map[string]bool
	codes    map[string]authorization
	asked    map[string]int // requests by path
	key      *ecdsa.PrivateKey
	keyID    string

	// Changes of answers; nil: none. Set them before the first request.
	Discovery func(document map[string]any)
	Claims    func(claims map[string]any)
	Sign      func(p *Provider, claims map[string]any) string
	Serve     func(w http.ResponseWriter, r *http.Request) (served bool)
	Back      func(query url.Values) // changes the redirect to the client
}

type authorization struct {
	query url.Values
}

// New starts a provider with the person ann, who is in the group dev.
func New(t testing.TB) *Provider {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{
		ClientID: "muster", Secret: "the secret of the client", subject: "ann", claims: map[string]any{"email": "ann@example.com", "groups": []string{"dev"}}, refresh: true,
		refreshs: map[string]bool{}, codes: map[string]authorization{}, asked: map[string]int{}, key: key, keyID: "k1",
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	routes.HandleFunc("GET /keys", p.keys)
	routes.HandleFunc("GET /authorize", p.authorize)
	routes.HandleFunc("POST /token", p.token)
	routes.HandleFunc("GET /userinfo", p.userinfo)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.URL.Path]++
		down := p.down
		p.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		if p.Serve == nil || !p.Serve(w, r) {
			routes.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// Person sets the person who signs in, and the person's claims.
func (p *Provider) Person(subject string, claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subject, p.claims = subject, maps.Clone(claims)
}

// Gone refuses all refreshes from now on, as if the person had been removed.
func (p *Provider) Gone() { p.set(func() { p.gone = true }) }

// Down answers every request with an error, or ends that.
func (p *Provider) Down(down bool) { p.set(func() { p.down = down }) }

// NoRefresh stops issuing refresh tokens.
func (p *Provider) NoRefresh() { p.set(func() { p.refresh = false }) }

func (p *Provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// Asked returns the number of requests for a path.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// Settings returns the service's settings for this provider, with a name and the groups that grant roles.
func (p *Provider) Settings(t testing.TB, name string, roles map[string][]string) map[string]any {
	t.Setenv("MUSTER_TEST_SECRET_"+name, p.Secret)
	return map[string]any{"name": name, "issuer": p.URL, "clientId": p.ClientID, "clientSecretEnv": "MUSTER_TEST_SECRET_" + name, "roles": roles, "groupPrefix": map[bool]string{true: "", false: name + ":"}[name == "studio"]}
}

func reply(w http.ResponseWriter, status int, x any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(x)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	document := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		"scopes_supported": []string{"openid", "profile", "email", "groups", "offline_access"}, "authorization_response_iss_parameter_supported": true,
	}
	if p.Discovery != nil {
		p.Discovery(document)
	}
	reply(w, http.StatusOK, document)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	key, id := p.signing()
	reply(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"}}})
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("client_id") != p.ClientID || query.Get("code_challenge_method") != "S256" || query.Get("code_challenge") == "" {
		http.Error(w, "want the client and a code challenge", http.StatusBadRequest)
		return
	}
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	with := url.Values{"code": {p.Code(query)}, "state": {query.Get("state")}, "iss": {p.URL}}
	if p.Back != nil {
		p.Back(with)
	}
	back.RawQuery = with.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// Code returns a new code for a client's request.
func (p *Provider) Code(query url.Values) string {
	code := rand.Text()
	p.set(func() { p.codes[code] = authorization{query} })
	return code
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if s, err := url.QueryUnescape(secret); err == nil {
		secret = s
	}
	if id != p.ClientID || secret != p.Secret {
		reply(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	p.mu.Lock()
	nonce, good := "", false
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		code := r.PostFormValue("code")
		var a authorization
		if a, good = p.codes[code]; good {
			delete(p.codes, code)
			sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
			good = base64.RawURLEncoding.EncodeToString(sum[:]) == a.query.Get("code_challenge") && r.PostFormValue("redirect_uri") == a.query.Get("redirect_uri")
			nonce = a.query.Get("nonce")
		}
	case "refresh_token":
		token := r.PostFormValue("refresh_token")
		good = p.refreshs[token] && !p.gone
		delete(p.refreshs, token)
	}
	claims := map[string]any{"iss": p.URL, "sub": p.subject, "aud": p.ClientID, "iat": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix()}
	maps.Copy(claims, p.claims)
	answer := map[string]any{"access_token": "access-" + p.subject, "token_type": "Bearer", "expires_in": 300}
	if p.refresh {
		next := rand.Text()
		p.refreshs[next] = true
		answer["refresh_token"] = next
	}
	p.mu.Unlock()
	if !good {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if p.Claims != nil {
		p.Claims(claims)
	}
	answer["id_token"] = p.Signed(claims)
	reply(w, http.StatusOK, answer)
}

// Signed returns a token with claims.
func (p *Provider) Signed(claims map[string]any) string {
	if p.Sign != nil {
		return p.Sign(p, claims)
	}
	key, id := p.signing()
	return p.SignedAs(jose.ES256, key, id, claims)
}

// NewKey replaces the provider's key with one that has the given id. The id of the first key is k1.
func (p *Provider) NewKey(id string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.set(func() { p.key, p.keyID = key, id })
	return err
}

func (p *Provider) signing() (key *ecdsa.PrivateKey, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key, p.keyID
}

// SignedAs returns a token that is signed with another algorithm, key or id.
func (p *Provider) SignedAs(alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

// PublicKey returns the key that verifies its tokens.
func (p *Provider) PublicKey() *ecdsa.PublicKey { return &p.key.PublicKey }

func (p *Provider) userinfo(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	claims := map[string]any{"sub": p.subject}
	maps.Copy(claims, p.claims)
	good := r.Header.Get("Authorization") == "Bearer access-"+p.subject
	p.mu.Unlock()
	if !good {
		http.Error(w, "want the access token", http.StatusUnauthorized)
		return
	}
	reply(w, http.StatusOK, claims)
}
