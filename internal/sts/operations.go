package sts

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/xml"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// How long temporary credentials are valid, in seconds. Source: the API reference of AWS STS, DurationSeconds of each operation.
const (
	durationMin           = 900
	assumeDurationDefault = 3600
	assumeDurationMax     = 43_200
	chainedDurationMax    = 3600 // of a role assumed with the credentials of a role
	tokenDurationDefault  = 43_200
	tokenDurationMax      = 129_600
)

type callerIdentity struct {
	XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ GetCallerIdentityResponse"`
	ARN     string   `xml:"GetCallerIdentityResult>Arn"`
	UserID  string   `xml:"GetCallerIdentityResult>UserId"`
	Account string   `xml:"GetCallerIdentityResult>Account"`
	metadata
}

func (d *Door) getCallerIdentity(r *request) (any, error) {
	user := cmp.Or(r.by.ID, "anonymous")
	if x := r.by.Session(); x != nil && x.Name != "" {
		user = roleID(x) + ":" + x.Name
	}
	return &callerIdentity{ARN: r.by.ARN(), UserID: user, Account: r.by.Account}, nil
}

// roleID returns the id of a role in AWS's format.
func roleID(x *identity.Session) string {
	sum := sha256.Sum256([]byte("role\x00" + x.Account + "\x00" + x.Role.String()))
	return "AROA" + base32.StdEncoding.EncodeToString(sum[:10])
}

type accessKeyInfo struct {
	XMLName xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ GetAccessKeyInfoResponse"`
	Account string   `xml:"GetAccessKeyInfoResult>Account"`
	metadata
}

var keyIDForm = regexp.MustCompile(`^\w{16,128}$`)

// getAccessKeyInfo also answers for keys that do not exist, because an installation has one account, and the answer must not reveal which keys exist.
func (d *Door) getAccessKeyInfo(r *request) (any, error) {
	if id := r.form.Get("AccessKeyId"); !keyIDForm.MatchString(id) {
		return nil, invalid("accessKeyId", id, `\w{16,128}`)
	}
	return &accessKeyInfo{Account: identity.DefaultAccount}, nil
}

type xmlCredentials struct {
	AccessKeyID  string `xml:"AccessKeyId"`
	Secret       string `xml:"SecretAccessKey"`
	SessionToken string `xml:"SessionToken"`
	Expiration   string `xml:"Expiration"`
}

func shown(c *identity.Credentials) xmlCredentials {
	return xmlCredentials{c.ID, c.Secret, c.Token, c.Expires.UTC().Format(time.RFC3339)}
}

type sessionToken struct {
	XMLName     xml.Name       `xml:"https://sts.amazonaws.com/doc/2011-06-15/ GetSessionTokenResponse"`
	Credentials xmlCredentials `xml:"GetSessionTokenResult>Credentials"`
	metadata
}

func (d *Door) getSessionToken(r *request) (any, error) {
	if err := d.mayIssue(r, "GetSessionToken"); err != nil {
		return nil, err
	}
	if r.by.Session() != nil {
		return nil, &refusal{codeAccessDenied, "Cannot call GetSessionToken with session credentials"}
	}
	valid, err := duration(r, tokenDurationDefault, tokenDurationMax)
	if err != nil {
		return nil, err
	}
	c, err := d.issue(r, "GetSessionToken", identity.Session{Source: identity.FromKey, Holder: r.by.ID, Role: r.by.Role, Account: r.by.Account}, valid)
	if err != nil {
		return nil, err
	}
	return &sessionToken{Credentials: shown(&c)}, nil
}

type assumedRole struct {
	ID  string `xml:"AssumedRoleId"`
	ARN string `xml:"Arn"`
}

type roleAssumed struct {
	XMLName     xml.Name       `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleResponse"`
	Credentials xmlCredentials `xml:"AssumeRoleResult>Credentials"`
	User        assumedRole    `xml:"AssumeRoleResult>AssumedRoleUser"`
	metadata
}

var sessionNameForm = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

func (d *Door) assumeRole(r *request) (any, error) {
	role, err := d.roleOf(r)
	if err != nil {
		return nil, err
	}
	if err := d.mayIssue(r, "AssumeRole", r.form.Get("RoleArn")); err != nil {
		return nil, err
	}
	if !r.by.Role.Covers(role) {
		return nil, notAuthorized(r, "AssumeRole", "the role "+r.by.Role.String()+" may not assume one above it")
	}
	x := identity.Session{Source: identity.FromKey, Holder: r.by.ID, Name: r.form.Get("RoleSessionName"), Role: role, Account: r.by.Account}
	most := assumeDurationMax
	if own := r.by.Session(); own != nil {
		switch own.Source {
		case identity.FromWebIdentity:
			return nil, notAuthorized(r, "AssumeRole", "a machine gets another role with its token alone, by "+webIdentity)
		case identity.FromCertificate:
			return nil, notAuthorized(r, "AssumeRole", "a machine gets another role with its certificate alone, by "+createSession)
		}
		x.Source, x.Holder, x.SignIn = own.Source, own.Holder, own.SignIn // whatever ends the holder ends the new credentials, too; the revocation of this one session does not
		if own.Name != "" {
			most = chainedDurationMax
		}
	}
	valid, err := duration(r, min(assumeDurationDefault, most), most)
	if err != nil {
		return nil, err
	}
	c, err := d.issue(r, "AssumeRole", x, valid)
	if err != nil {
		return nil, err
	}
	return &roleAssumed{Credentials: shown(&c), User: assumedRole{roleID(&c.Session) + ":" + c.Name, c.ARN()}}, nil
}

// roleOf parses the parameters that all ways to assume a role share. It refuses unsupported ones that would narrow the credentials, because the
// credentials must not permit more than the client asked for.
func (d *Door) roleOf(r *request) (identity.Role, error) {
	arn, name := r.form.Get("RoleArn"), r.form.Get("RoleSessionName")
	switch {
	case len(arn) < 20 || len(arn) > 2048:
		return 0, invalid("roleArn", arn, "an ARN of 20 to 2048 characters, arn:aws:iam::"+identity.DefaultAccount+":role/NAME")
	case !sessionNameForm.MatchString(name):
		return 0, invalid("roleSessionName", name, `[\w+=,.@-]{2,64}`)
	case r.form.Get("SourceIdentity") != "":
		return 0, &refusal{codeValidation, "SourceIdentity is not supported: name the person or program in RoleSessionName"}
	case r.form.Get("TokenCode") != "" || r.form.Get("SerialNumber") != "":
		return 0, &refusal{codeAccessDenied, "MultiFactorAuthentication failed: access keys have no MFA device"}
	}
	if err := noPolicy(r); err != nil {
		return 0, err
	}
	text, ok := strings.CutPrefix(arn, "arn:aws:iam::"+identity.DefaultAccount+":role/")
	role := identity.Role(0)
	if !ok || role.UnmarshalText([]byte(text)) != nil {
		return 0, notAuthorized(r, r.form.Get("Action"), "the roles of this installation are arn:aws:iam::"+identity.DefaultAccount+":role/ and admin, backend, client or readonly")
	}
	return role, nil
}

// noPolicy refuses session policies.
func noPolicy(r *request) error {
	for name := range r.form {
		if name == "Policy" || strings.HasPrefix(name, "PolicyArns.") {
			return &refusal{codeMalformedPolicy, name + ": policies of a session are not supported: want credentials of a lower role"}
		}
	}
	return nil
}

// mayIssue refuses keys of the role client: they are in every copy of a game, so credentials that they could issue to themselves would protect
// nothing. It checks policies for each role that the operation grants or, without any, for no particular resource.
func (d *Door) mayIssue(r *request, operation string, roles ...string) error {
	if r.by.Role == identity.Client {
		return notAuthorized(r, operation, "the role client may not")
	}
	if err := r.by.MayDoAll(policy.MustBe("sts:"+operation), roles...); err != nil {
		return &refusal{codeAccessDenied, err.Error()}
	}
	return nil
}

func notAuthorized(r *request, operation, because string) error {
	text := "User: " + r.by.ARN() + " is not authorized to perform: sts:" + operation
	if r.stranger {
		text = "Not authorized to perform sts:" + operation
	}
	if arn := r.form.Get("RoleArn"); arn != "" {
		text += " on resource: " + excerpt.Short(arn)
	}
	return &refusal{codeAccessDenied, text + ": " + because}
}

// duration parses DurationSeconds.
func duration(r *request, without, most int) (time.Duration, error) {
	text := r.form.Get("DurationSeconds")
	seconds := without
	if text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < durationMin || n > most {
			return 0, invalid("durationSeconds", text, "a number from "+strconv.Itoa(durationMin)+" to "+strconv.Itoa(most))
		}
		seconds = n
	}
	return time.Duration(seconds) * time.Second, nil
}
