package sts

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/webidentity"
)

const webIdentity = "AssumeRoleWithWebIdentity"

// webIdentityRate bounds the calls of one address, which may be shared by a cluster of machines that all start at once.
var webIdentityRate = rate.Every(time.Second/20, 200)

// Limit on log lines about issuers that cannot be reached.
const (
	unreachableLogged = 5
	unreachableWithin = time.Minute
)

// Verifier checks tokens of machines. *webidentity.Issuers implements it.
type Verifier interface {
	Verify(ctx context.Context, token string) (*webidentity.Machine, error)
}

// Error codes for tokens. Source: the API model of AWS STS.
const (
	codeInvalidToken  = "InvalidIdentityToken"
	codeExpiredToken  = "ExpiredTokenException"
	codeRejectedClaim = "IDPRejectedClaim"
	codeUnreachable   = "IDPCommunicationError"
	codeThrottling    = "Throttling"
)

// tokenProblems map problems to error codes and to the reasons why a sign-in failed.
var tokenProblems = map[webidentity.Problem]struct {
	code   string
	reason signin.Reason
}{
	webidentity.Invalid: {codeInvalidToken, signin.WrongToken},
	webidentity.Expired: {codeExpiredToken, signin.Expired},
	webidentity.Claims:  {codeRejectedClaim, signin.WrongToken},
}

type webRoleAssumed struct {
	XMLName     xml.Name       `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleWithWebIdentityResponse"`
	Credentials xmlCredentials `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	Subject     string         `xml:"AssumeRoleWithWebIdentityResult>SubjectFromWebIdentityToken"`
	User        assumedRole    `xml:"AssumeRoleWithWebIdentityResult>AssumedRoleUser"`
	Provider    string         `xml:"AssumeRoleWithWebIdentityResult>Provider"`
	Audience    string         `xml:"AssumeRoleWithWebIdentityResult>Audience"`
	metadata
}

func (d *Door) machines() Verifier {
	if d.config.Machines == nil {
		return nil
	}
	return d.config.Machines()
}

// assumeRoleWithWebIdentity serves machines without a secret: the call is unsigned, and the token identifies the machine.
func (d *Door) assumeRoleWithWebIdentity(r *request) (any, error) {
	r.stranger = true // also a signed request, because the token decides what it gets
	machines := d.machines()
	if machines == nil {
		return nil, &refusal{codeAccessDenied, webIdentity + ": no issuer of tokens is configured: want --web-identities, or AssumeRole with an access key"}
	}
	if !d.machineRate.Allow(r.by.Address) {
		return nil, &refusal{codeThrottling, "Rate exceeded"}
	}
	token := r.form.Get("WebIdentityToken")
	switch {
	case !d.config.Private(r.Request):
		return nil, notPrivate()
	case len(token) < 4 || len(token) > webidentity.TokenBytesMax:
		return nil, invalid("webIdentityToken", "(hidden)", "a token of 4 to 16384 bytes")
	case r.form.Get("ProviderId") != "":
		return nil, invalid("providerId", r.form.Get("ProviderId"), "none: it is for access tokens of OAuth 2.0, and the tokens here are those of OpenID Connect")
	}
	r.by = identity.Principal{Address: r.by.Address}
	role, err := d.roleOf(r)
	if err != nil {
		return nil, err
	}
	machine, err := machines.Verify(r.Context(), token)
	if err != nil {
		return nil, d.refuseToken(r, err)
	}
	r.by, r.stranger = identity.Principal{ID: machine.Holder(), Address: r.by.Address}, false
	most := int(machine.May(role) / time.Second)
	if most == 0 {
		return nil, &refusal{codeAccessDenied, "Not authorized to perform sts:" + webIdentity + ": no rule gives the role " + role.String() + " to " + machine.Holder()}
	}
	valid, err := duration(r, min(assumeDurationDefault, most), most)
	if err != nil {
		return nil, err
	}
	x := identity.Session{Source: identity.FromWebIdentity, Holder: machine.Holder(), Name: r.form.Get("RoleSessionName"), Role: role, Account: identity.DefaultAccount}
	c, err := d.issue(r, webIdentity, x, valid)
	if err != nil {
		return nil, err
	}
	connlimit.Prove(r.Context())
	return &webRoleAssumed{
		Credentials: shown(&c), Subject: machine.Subject, User: assumedRole{roleID(&c.Session) + ":" + c.Name, c.ARN()}, Provider: machine.Issuer, Audience: machine.Audience,
	}, nil
}

// refuseToken counts and answers a request with an invalid token.
func (d *Door) refuseToken(r *request, err error) error {
	refused, ok := errors.AsType[*webidentity.Refused](err)
	if !ok {
		return err
	}
	if refused.Problem == webidentity.Unreachable {
		if write, silent := d.unreachable.Note(time.Now()); write {
			d.config.Log.Warn("the keys of an issuer of tokens cannot be fetched", "problem", refused.Error(), "error", refused.Unwrap(), "unlogged", silent)
		}
		return &refusal{codeUnreachable, refused.Error()}
	}
	problem := tokenProblems[refused.Problem]
	cause := refused.Unwrap()
	if cause == nil {
		cause = refused
	}
	if slow := d.config.Signins.Fail(signin.Failure{From: r.by.Address, Reason: problem.reason, Cause: cause}); slow != nil {
		return &refusal{codeThrottling, slow.Error()}
	}
	return &refusal{problem.code, refused.Error()}
}

// notPrivate returns the refusal to send a secret over an insecure connection.
func notPrivate() error {
	return &refusal{codeAccessDenied, "the answer contains a secret that others on the network could read: use https"}
}

// isSigned reports whether a request claims a signature.
func isSigned(r *http.Request) bool { return r.Header.Get("Authorization") != "" }
