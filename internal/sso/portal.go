package sso

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// tokenHeader is the header with the access token in calls of the portal.
const tokenHeader = "X-Amz-Sso_bearer_token"

// credentialsLife is how long temporary credentials of a role are valid. An hour is the default of an AWS permission set.
const credentialsLife = time.Hour

// pageMax is the largest page of accounts and roles.
const pageMax = 100

// accountName is what `aws configure sso` shows beside the only account.
const accountName = "Muster"

// bearer returns the person to whom a call's access token belongs.
func (d *Door) bearer(r *http.Request) (*Person, *problem) {
	token := r.Header.Get(tokenHeader)
	var x grant
	reason := signin.WrongToken
	switch {
	case token == "":
		reason = signin.Missing
	case !d.open(accessKind, token, tokenMax, &x):
	case !d.now().Before(x.Expires):
		reason = signin.Expired
	default:
		if person, ok := d.config.People.Session(r.Context(), x.SignIn); ok {
			connlimit.Prove(r.Context())
			return &person, nil
		}
		reason = signin.Expired
	}
	return nil, d.signInFailed(r, reason, tooMany, &unauthorized)
}

// byBearer makes an operation of a call of the portal.
func byBearer(do func(*Door, *http.Request, *Person) (any, *problem)) func(*Door, http.ResponseWriter, *http.Request) (any, *problem) {
	return func(d *Door, _ http.ResponseWriter, r *http.Request) (any, *problem) {
		person, p := d.bearer(r)
		if p != nil {
			return nil, p
		}
		return do(d, r, person)
	}
}

type roleCredentials struct {
	AccessKeyID  string `json:"accessKeyId"`
	Secret       string `json:"secretAccessKey"`
	SessionToken string `json:"sessionToken"`
	Expiration   int64  `json:"expiration"` // milliseconds
}

type roleCredentialsAnswer struct {
	RoleCredentials roleCredentials `json:"roleCredentials"`
}

func (d *Door) getRoleCredentials(r *http.Request, person *Person) (any, *problem) {
	q := r.URL.Query()
	account, name := q.Get("account_id"), q.Get("role_name")
	role, ok := roleNamed(person, name)
	switch {
	case account == "" || name == "":
		return nil, badRequest.because("role_name and account_id are required")
	case account != identity.DefaultAccount || !ok:
		return nil, &forbidden
	}
	valid := min(credentialsLife, person.Expires.Sub(d.now()))
	c, err := d.config.People.Issue(r.Context(), d.origin(r, person, "GetRoleCredentials"), person, role, valid)
	if err != nil {
		return nil, d.failure("GetRoleCredentials", failed, err)
	}
	return roleCredentialsAnswer{roleCredentials{c.ID, c.Secret, c.Token, c.Expires.UnixMilli()}}, nil
}

type accountInfo struct {
	ID   string `json:"accountId"`
	Name string `json:"accountName"`
}

type accountList struct {
	Next     *string       `json:"nextToken"`
	Accounts []accountInfo `json:"accountList"`
}

// listAccounts returns the installation's only account.
func (d *Door) listAccounts(r *http.Request, person *Person) (any, *problem) {
	all := []accountInfo{}
	if len(rolesOf(person)) > 0 {
		all = append(all, accountInfo{identity.DefaultAccount, accountName})
	}
	page, next, p := pageOf(r, all)
	return accountList{next, page}, p
}

type roleInfo struct {
	Name    string `json:"roleName"`
	Account string `json:"accountId"`
}

type roleList struct {
	Next  *string    `json:"nextToken"`
	Roles []roleInfo `json:"roleList"`
}

func (d *Door) listAccountRoles(r *http.Request, person *Person) (any, *problem) {
	switch account := r.URL.Query().Get("account_id"); account {
	case identity.DefaultAccount:
	case "":
		return nil, badRequest.because("account_id is required")
	default:
		return nil, &forbidden
	}
	all := []roleInfo{}
	for _, role := range rolesOf(person) {
		all = append(all, roleInfo{role.String(), identity.DefaultAccount})
	}
	page, next, p := pageOf(r, all)
	return roleList{next, page}, p
}

// pageOf returns the requested page of a list, and the token of the next page.
func pageOf[T any](r *http.Request, all []T) (page []T, next *string, p *problem) {
	q := r.URL.Query()
	most, begin := pageMax, 0
	if text := q.Get("max_result"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > pageMax {
			return nil, nil, badRequest.because("max_result: " + excerpt.Short(text) + "; want 1 to 100")
		}
		most = n
	}
	if text := q.Get("next_token"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n >= len(all) {
			return nil, nil, badRequest.because("next_token is not from an earlier answer")
		}
		begin = n
	}
	end := min(begin+most, len(all))
	if end < len(all) {
		text := strconv.Itoa(end)
		next = &text
	}
	return all[begin:end], next, nil
}

// logout ends the sign-in session, as AWS does: all tokens and temporary credentials derived from it, and the browser's sign-in.
func (d *Door) logout(r *http.Request, person *Person) (any, *problem) {
	ctx := context.WithoutCancel(r.Context()) // the sign-in ends even if the client leaves
	if err := d.config.People.End(ctx, d.origin(r, person, "Logout"), person.SignIn, SignedOut); err != nil {
		return nil, d.failure("Logout", failed, err)
	}
	return struct{}{}, nil
}
