package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/waittest"
)

// office is a cluster of three nodes for a person's sign-in, behind a balancer that sends each request to another node.
type office struct {
	*workplace
	nodes    []*service
	balancer *balancer
}

func newOffice(t *testing.T) *office {
	t.Helper()
	x := &office{workplace: newPerson(t), balancer: newBalancer(t)}
	x.nodes = threeNodes(t, "--dev=false", "--people", x.peopleFile(nil), "--public-url", x.balancer.url())
	x.balancer.serve(t, x.nodes)
	x.service = &service{t: t, address: x.balancer.address, logs: x.nodes[0].logs}
	return x
}

// at returns the person's view of one node: the browser has the same cookie for all of them.
func (x *office) at(node int) *workplace {
	_, port, err := net.SplitHostPort(x.nodes[node].address)
	must(x.t, err)
	return &workplace{t: x.t, service: &service{t: x.t, address: net.JoinHostPort("localhost", port)}, provider: x.provider, browser: x.browser, answer: "approve"}
}

// portal makes a call of the portal, with an access token.
func (x *workplace) portal(method, path, token string) (status int, out map[string]any) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), method, x.url()+path, nil)
	must(x.t, err)
	r.Header.Set("X-Amz-Sso_bearer_token", token)
	answer, err := http.DefaultClient.Do(r)
	must(x.t, err)
	defer answer.Body.Close()
	must(x.t, json.NewDecoder(answer.Body).Decode(&out))
	return answer.StatusCode, out
}

// roleCredentials returns credentials of the role backend.
func (x *workplace) roleCredentials(token string) aws.Credentials {
	x.t.Helper()
	status, out := x.portal(http.MethodGet, "/federation/credentials?account_id=000000000000&role_name=backend", token)
	given, ok := out["roleCredentials"].(map[string]any)
	if status != http.StatusOK || !ok {
		x.t.Fatalf("credentials: %d %v", status, out)
	}
	return aws.Credentials{AccessKeyID: given["accessKeyId"].(string), SecretAccessKey: given["secretAccessKey"].(string), SessionToken: given["sessionToken"].(string)}
}

// Each step of a sign-in comes to another node: the registration, the person's approval, its form, the code, the credentials, their use, the renewal. A sign-out at one node ends all of it at
// every node, also at one that was down meanwhile.
func TestSignInAcrossACluster(t *testing.T) {
	t.Parallel()
	x := newOffice(t)
	a := newAttacker(x.at(0)) // a client as any other
	other := func(node int) *attacker { return &attacker{x.at(node), a.id, a.secret} }
	if p, err := x.open(x.url() + "/device"); err != nil || !strings.Contains(p.text, "user_code") { // begins at one node, and comes back from the provider to another one
		t.Fatalf("the sign-in in the browser: %v %s", err, p.text)
	}
	approve := func(shown, sent int) (code string) {
		t.Helper()
		asks := other(shown)
		p, err := asks.open(asks.authorization())
		must(t, err)
		at, form, err := asks.sendable(p)
		must(t, err)
		to, err := url.Parse(at)
		must(t, err)
		to.Host = x.at(sent).address
		back, err := asks.sendBack(to.String(), form)
		must(t, err)
		return back.Get("code")
	}
	for i := range 3 { // a node that has not received the session yet asks for it, and not the person
		for j := range 3 {
			x.freshBrowser()
			if p, err := x.at(i).open(x.at(i).url() + "/device"); err != nil || !strings.Contains(p.text, "user_code") {
				t.Fatalf("the sign-in at node %d: %v %s", i, err, p.text)
			}
			if p, err := x.at(j).get(x.at(j).url() + "/device"); err != nil || !strings.Contains(p.text, "user_code") {
				t.Errorf("signed in at node %d, the browser is led by node %d to %s: %v", i, j, p.at, err)
			}
		}
	}
	code := approve(1, 2)
	out, kind := other(0).exchange(code, attackVerifier)
	if kind != "" {
		t.Fatalf("the code at a third node: %s %v", kind, out)
	}
	access, refresh := out["accessToken"].(string), out["refreshToken"].(string)
	first := x.at(1).roleCredentials(access)
	must(t, x.nodes[2].lists(first))
	everywhere(t, x.nodes, first)
	renew := func(node int) (map[string]any, string) {
		return other(node).post("/token", map[string]any{"clientId": a.id, "clientSecret": a.secret, "grantType": "refresh_token", "refreshToken": refresh})
	}
	out, kind = renew(2)
	if kind != "" {
		t.Fatalf("the refresh token: %s %v", kind, out)
	}
	renewed := out["accessToken"].(string)
	second := x.at(0).roleCredentials(renewed)
	must(t, x.nodes[1].lists(second))

	down := x.nodes[2]
	down.kill()
	if status, out := x.at(1).portal(http.MethodPost, "/logout", renewed); status != http.StatusOK {
		t.Fatalf("the logout: %d %v", status, out)
	}
	up := x.nodes[:2]
	for _, c := range []aws.Credentials{first, second} {
		t.Logf("credentials of the sign-in are refused after %v", refusedEverywhere(t, up, c))
	}
	down.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, down) })
	for i, n := range x.nodes {
		for _, c := range []aws.Credentials{first, second} {
			refusedEverywhere(t, []*service{n}, c)
		}
		for what, token := range map[string]string{"first": access, "renewed": renewed} {
			if status, out := x.at(i).portal(http.MethodGet, "/assignment/accounts", token); status != http.StatusUnauthorized {
				t.Errorf("node %d, the %s access token after the logout: %d %v", i, what, status, out)
			}
		}
		if out, kind := renew(i); kind != "InvalidGrantException" {
			t.Errorf("node %d, the refresh token after the logout: %s %v", i, kind, out)
		}
		if p, err := x.get(x.at(i).url() + "/device"); err != nil || !strings.Contains(p.at.Path, "/signin") {
			t.Errorf("node %d, the browser after the logout: %v, at %s", i, err, p.at)
		}
	}

	// A code that is used at two nodes counts as stolen, whichever node receives it first.
	if _, err := x.open(x.url() + "/device"); err != nil {
		t.Fatal(err)
	}
	code = approve(0, 1)
	out, kind = other(2).exchange(code, attackVerifier)
	if kind != "" {
		t.Fatalf("a second code: %s %v", kind, out)
	}
	third := x.at(0).roleCredentials(out["accessToken"].(string))
	if _, kind := other(1).exchange(code, attackVerifier); kind != "InvalidGrantException" {
		t.Errorf("the code again, at another node: %s", kind)
	}
	refusedEverywhere(t, x.nodes, third)
}

// The AWS CLI signs a person in through a load balancer that sends each request to another node. The leader is killed when the CLI has its code and the person is about to confirm it.
func TestSignInWhileTheLeaderDies(t *testing.T) {
	t.Parallel()
	x := newOffice(t)
	x.mustMuster("aws-profile", "studio", "--sso", "--public-url", x.url())
	leader := nodeOf(t, x.nodes, clusterStatus(t, x.nodes[0]).Leader)
	x.before = leader.kill
	cli := x.loginWithCLI()
	leader.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, leader) })
	key := cli.credentials()
	everywhere(t, x.nodes, key)
	cli.logout()
	refusedEverywhere(t, x.nodes, key)
}
