package providers

import (
	"context"
	"fmt"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/musterhq/muster/internal/domain/people"
)

// Person is a provider's statement about a person who signed in.
type Person struct {
	Subject, Name string
	Groups        []string
	GroupsSaid    bool   // false: the answer did not mention groups
	Sid           string // id of the session at the provider; empty: not stated
	Refresh       string // refresh token; empty: the provider issued none
}

// person reads the claims. It requests groups that are not in the ID token from the provider's userinfo endpoint.
func (p *Provider) person(ctx context.Context, d *discovery, id *oidc.IDToken, token *oauth2.Token) (Person, error) {
	claims := map[string]any{}
	if id.Issuer != "" {
		if err := id.Claims(&claims); err != nil {
			return Person{}, fmt.Errorf("id_token: %w", err)
		}
	}
	groups, found, err := p.groups(claims)
	if err != nil {
		return Person{}, err
	}
	name, said := p.nameIn(claims), id.Issuer != ""
	if (!found || name == "") && d.UserInfoEndpoint() != "" {
		info, err := d.UserInfo(oidc.ClientContext(ctx, p.client), oauth2.StaticTokenSource(token))
		if err != nil {
			return Person{}, fmt.Errorf("%w: userinfo: %w", ErrUnreachable, err)
		}
		if info.Subject != id.Subject { // OpenID Connect Core, 5.3.2: otherwise it may belong to another person
			return Person{}, fmt.Errorf("userinfo: it is about subject %.100q, want %.100q", info.Subject, id.Subject)
		}
		said = true
		more := map[string]any{}
		if err := info.Claims(&more); err != nil {
			return Person{}, fmt.Errorf("userinfo: %w", err)
		}
		if !found {
			if groups, _, err = p.groups(more); err != nil {
				return Person{}, err
			}
		}
		if name == "" {
			name = p.nameIn(more)
		}
	}
	return Person{Subject: id.Subject, Name: name, Groups: groups, GroupsSaid: said, Refresh: token.RefreshToken, Sid: sidOf(claims)}, nil
}

// sidOf returns the id of the session at the provider. One that is too long counts as missing, in ID tokens and in logout tokens, so that a logout ends all sessions of
// its subject.
func sidOf(claims map[string]any) string {
	sid, _ := claims["sid"].(string)
	if len(sid) > people.SidMax {
		return ""
	}
	return sid
}

// groups reads the groups claim: a list of texts, or one text.
func (p *Provider) groups(claims map[string]any) (groups []string, found bool, err error) {
	if elsewhere, ok := claims["_claim_names"].(map[string]any); ok && elsewhere[p.groupsClaim] != nil {
		return nil, false, fmt.Errorf("the provider left the claim %s out because the person is in too many groups: let it send only the groups that are assigned to this application", p.groupsClaim)
	}
	value, found := claimAt(claims, p.groupsClaim)
	if !found {
		return nil, false, nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, x := range list {
		g, ok := x.(string)
		if !ok {
			return nil, false, fmt.Errorf("claim %s: %.60v, want strings", p.groupsClaim, x)
		}
		if g != "" {
			groups = append(groups, p.groupPrefix+g)
		}
	}
	return groups, true, nil
}

// claimAt finds a claim by its name, or by a path of names separated by dots.
func claimAt(claims map[string]any, name string) (any, bool) {
	if value, ok := claims[name]; ok {
		return value, value != nil
	}
	first, rest, deeper := strings.Cut(name, ".")
	if inner, ok := claims[first].(map[string]any); ok && deeper {
		return claimAt(inner, rest)
	}
	return nil, false
}

func (p *Provider) nameIn(claims map[string]any) string {
	names := []string{"email", "preferred_username", "name"}
	if p.nameClaim != "" {
		names = []string{p.nameClaim}
	}
	for _, name := range names {
		if value, ok := claimAt(claims, name); ok {
			if text, ok := value.(string); ok && text != "" {
				return people.Short(text, people.NameMax)
			}
		}
	}
	return ""
}
