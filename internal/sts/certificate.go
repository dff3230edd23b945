package sts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

const (
	createSession = "CreateSession"

	// sessionBodyMax is far larger than the body that clients send.
	sessionBodyMax = 8 << 10
)

// CertificateVerifier checks requests that are signed with client certificates. *clientcert.Authorities implements it.
type CertificateVerifier interface {
	Verify(r *http.Request, body []byte, authority string) (*clientcert.Machine, error)
}

// ServesCertificates reports whether a request is CreateSession of AWS IAM Roles Anywhere.
func ServesCertificates(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == clientcert.Path
}

// sessionWanted is the body of CreateSession. Clients send ARNs in the query or in the body. Source: the API reference of IAM Roles Anywhere,
// and aws_signing_helper.
type sessionWanted struct {
	DurationSeconds    int               `json:"durationSeconds"`
	ProfileARN         string            `json:"profileArn"`
	RoleARN            string            `json:"roleArn"`
	TrustAnchorARN     string            `json:"trustAnchorArn"`
	RoleSessionName    string            `json:"roleSessionName"`
	SessionName        string            `json:"sessionName"`
	InstanceProperties map[string]string `json:"instanceProperties"`
	Cert               string            `json:"cert"`
}

type sessionMade struct {
	CredentialSet []credentialMade `json:"credentialSet"`
	SubjectARN    string           `json:"subjectArn"`
}

type credentialMade struct {
	AssumedRoleUser struct {
		ARN string `json:"arn"`
		ID  string `json:"assumedRoleId"`
	} `json:"assumedRoleUser"`
	Credentials struct {
		AccessKeyID  string `json:"accessKeyId"`
		Secret       string `json:"secretAccessKey"`
		SessionToken string `json:"sessionToken"`
		Expiration   string `json:"expiration"`
	} `json:"credentials"`
	RoleARN string `json:"roleArn"`
	Source  string `json:"sourceIdentity"`
}

// Error codes of CreateSession. Source: the API reference of IAM Roles Anywhere.
const (
	codeDeniedException     = "AccessDeniedException"
	codeValidationException = "ValidationException"
)

// CreateSession serves backends that exchange a signature with a client certificate for temporary credentials.
func (d *Door) CreateSession(w http.ResponseWriter, r *http.Request) {
	began, id := time.Now(), gamelift.NewRequestID()
	from, body, refused := d.config.Unsigned(w, r, sessionBodyMax)
	if refused != nil {
		d.calls.Done(createSession, outcome(refused.Status), began)
		writeSession(w, refused.Status, refused.Code, map[string]string{"message": refused.Message}, id)
		return
	}
	made, err := d.createSession(&request{Request: r, by: identity.Principal{Address: from}, id: id, stranger: true}, body)
	if err == nil {
		d.calls.Done(createSession, callstats.OK, began)
		writeSession(w, http.StatusCreated, "", made, id)
		return
	}
	problem, ok := errors.AsType[*refusal](err)
	code, status := codeValidationException, http.StatusBadRequest
	switch {
	case !ok:
		problem, code, status = &refusal{codeInternal, "The request failed inside the service. The log has the cause under this request id."}, codeInternal, http.StatusInternalServerError
		d.logFailure(createSession, id, err)
	case problem.code == codeThrottling:
		code, status = "ThrottlingException", http.StatusTooManyRequests
	case problem.code == codeAccessDenied:
		code, status = codeDeniedException, http.StatusForbidden
	}
	d.calls.Done(createSession, callstats.Heard(r.Context(), outcome(status)), began)
	writeSession(w, status, code, map[string]string{"message": problem.message}, id)
}

func writeSession(w http.ResponseWriter, status int, code string, answer any, id string) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic("sts: answer: " + err.Error()) // strings always marshal
	}
	header := w.Header()
	header.Set("X-Amzn-Requestid", id)
	if code != "" {
		header.Set("X-Amzn-Errortype", code)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has closed the connection
}

func (d *Door) certificates() CertificateVerifier {
	if d.config.Certificates == nil {
		return nil
	}
	return d.config.Certificates()
}

// createSession issues credentials to a backend, which the certificate with whose key the request is signed identifies.
func (d *Door) createSession(r *request, body []byte) (*sessionMade, error) {
	certificates := d.certificates()
	switch {
	case certificates == nil:
		return nil, &refusal{codeAccessDenied, createSession + ": no authority of client certificates is configured: want --client-certificates, or AssumeRole with an access key"}
	case !d.machineRate.Allow(r.by.Address):
		return nil, &refusal{codeThrottling, "Rate exceeded"}
	case !d.config.Private(r.Request):
		return nil, notPrivate()
	}
	var in sessionWanted
	if len(body) > 0 {
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, &refusal{codeValidation, "the body is not an object of CreateSession in JSON"}
		}
	}
	query := r.URL.Query()
	for name, to := range map[string]*string{"roleArn": &in.RoleARN, "trustAnchorArn": &in.TrustAnchorARN, "profileArn": &in.ProfileARN} {
		if x := query.Get(name); x != "" {
			*to = x
		}
	}
	if in.InstanceProperties != nil || in.SessionName != "" {
		return nil, &refusal{codeValidation, "instanceProperties and sessionName have no meaning here: want roleSessionName"}
	}
	anchor, err := anchorOf(in.TrustAnchorARN)
	if err != nil {
		return nil, err
	}
	machine, err := certificates.Verify(r.Request, body, anchor)
	if err != nil {
		return nil, d.refuseCertificate(r, err)
	}
	x := identity.Session{Source: identity.FromCertificate, Holder: machine.Holder(), Account: identity.DefaultAccount, Certificate: machine.Fingerprint, Serial: machine.Serial}
	r.by, r.stranger = identity.Principal{ID: machine.Holder(), Address: r.by.Address}, false
	if d.config.Keys.CertificateRevoked(&x) {
		return nil, d.refuseCertificate(r, errRevoked)
	}
	x.Name = in.RoleSessionName
	if x.Name == "" {
		x.Name = fmt.Sprintf("%02s", machine.Serial) // as at AWS
	}
	r.form = url.Values{"Action": {createSession}, "RoleArn": {in.RoleARN}, "RoleSessionName": {x.Name}}
	if in.DurationSeconds != 0 {
		r.form.Set("DurationSeconds", strconv.Itoa(in.DurationSeconds))
	}
	if x.Role, err = d.roleOf(r); err != nil {
		return nil, err
	}
	life, groups := machine.May(x.Role)
	most := int(life / time.Second)
	if most == 0 {
		d.config.Audit.RefusedAs(d.origin(r, createSession), "AccessDenied")
		return nil, &refusal{codeAccessDenied, "Not authorized to perform " + createSession + ": no rule gives the role " + x.Role.String() + " to " + machine.Holder()}
	}
	valid, err := duration(r, min(assumeDurationDefault, most), most)
	if err != nil {
		return nil, err
	}
	x.Groups = groups
	c, err := d.issue(r, createSession, x, min(valid, time.Until(machine.Expires)))
	if err != nil {
		return nil, err
	}
	connlimit.Prove(r.Context())
	made := credentialMade{RoleARN: in.RoleARN, Source: machine.Subject}
	made.AssumedRoleUser.ARN, made.AssumedRoleUser.ID = c.ARN(), roleID(&c.Session)+":"+c.Name
	xml := shown(&c)
	made.Credentials.AccessKeyID, made.Credentials.Secret, made.Credentials.SessionToken, made.Credentials.Expiration = xml.AccessKeyID, xml.Secret, xml.SessionToken, xml.Expiration
	return &sessionMade{[]credentialMade{made}, "arn:aws:rolesanywhere:" + machine.Region + ":" + identity.DefaultAccount + ":subject/" + machine.Fingerprint}, nil
}

// anchorOf returns the name of the authority in an ARN. Its account distinguishes a request for this service from one for AWS.
func anchorOf(arn string) (string, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(arn) > 256 || len(parts) != 6 || parts[0] != "arn" || parts[2] != "rolesanywhere" || parts[4] != identity.DefaultAccount {
		return "", invalid("trustAnchorArn", arn, "arn:aws:rolesanywhere:REGION:"+identity.DefaultAccount+":trust-anchor/NAME, with the name of an authority of the settings")
	}
	name, ok := strings.CutPrefix(parts[5], "trust-anchor/")
	if !ok {
		return "", invalid("trustAnchorArn", arn, "one that ends with trust-anchor/NAME")
	}
	return name, nil
}

var errRevoked = errors.New("the certificate is revoked")

// certificateProblems map problems to the reasons why a sign-in failed.
var certificateProblems = map[clientcert.Problem]signin.Reason{
	clientcert.Malformed: signin.Malformed, clientcert.Clock: signin.Clock, clientcert.Untrusted: signin.Certificate, clientcert.Expired: signin.Expired, clientcert.Unauthorized: signin.Certificate,
}

// refuseCertificate counts and answers a request with an invalid certificate. A revoked certificate gets the same answer as one that no
// authority has signed.
func (d *Door) refuseCertificate(r *request, err error) error {
	reason, code, text := signin.Certificate, codeAccessDenied, "The certificate was not issued by this authority for client authentication."
	cause := err
	if refused, ok := errors.AsType[*clientcert.Refused](err); ok {
		reason, text = certificateProblems[refused.Problem], refused.Error()
		if refused.Problem == clientcert.Malformed {
			code = codeValidation
		}
		if inner := refused.Unwrap(); inner != nil {
			cause = inner
		}
	}
	if slow := d.config.CertificateSignins.Fail(signin.Failure{From: r.by.Address, Reason: reason, Cause: cause}); slow != nil {
		return &refusal{codeThrottling, slow.Error()}
	}
	return &refusal{code, text}
}
