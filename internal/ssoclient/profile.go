// Package ssoclient is the terminal's half of a person's sign-in: profiles that sign in, and the tokens of people who have. It keeps both where the AWS CLI and the SDKs
// do, so that a person who signs in with one of these programs has signed in with all of them.
package ssoclient

import (
	"crypto/sha1" // #nosec G505 -- names files, as the AWS CLI does
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/awsfile"
)

// OwnRole is the role of a profile that names none: the service gives the one with the most rights that the person has.
const OwnRole = "own"

// accountScope is what a client asks for to get credentials, and to renew its access token.
const accountScope = "sso:account:access"

// Profile is a profile of AWS clients with which a person signs in to a service of Muster.
type Profile struct {
	Name     string
	Session  string // sso-session
	StartURL string
	Endpoint string // of the service
	Region   string // for signatures; the service accepts any
	Account  string
	Role     string
}

// Section is the section of a profile in the config file.
func Section(profile string) string {
	if profile == "default" {
		return profile
	}
	return "profile " + profile
}

func sessionSection(session string) string { return "sso-session " + session }

// Read returns a profile of the config file, if it signs in by an sso-session and has an endpoint.
func Read(config *awsfile.File, name string) (p Profile, ok bool) {
	section := Section(name)
	p = Profile{Name: name, Session: config.Get(section, "sso_session"), Endpoint: config.Get(section, "endpoint_url"), Region: config.Get(section, "region"),
		Account: config.Get(section, "sso_account_id"), Role: config.Get(section, "sso_role_name")}
	p.StartURL = config.Get(sessionSection(p.Session), "sso_start_url")
	if p.Region == "" {
		p.Region = config.Get(sessionSection(p.Session), "sso_region")
	}
	return p, p.Session != "" && p.Endpoint != "" && p.Account != "" && p.Role != ""
}

// Write sets a profile in the config file, which the caller saves.
func (p *Profile) Write(config *awsfile.File) {
	section := Section(p.Name)
	for _, x := range [][2]string{{"sso_session", p.Session}, {"sso_account_id", p.Account}, {"sso_role_name", p.Role}, {"region", p.Region}, {"endpoint_url", p.Endpoint}, {"services", p.Session}} {
		config.Set(section, x[0], x[1])
	}
	for _, service := range []string{"sso", "sso_oidc"} { // the SDK for Go does not ask the endpoint of the profile for these; see B210
		config.SetBelow("services "+p.Session, service, "endpoint_url", p.Endpoint)
	}
	section = sessionSection(p.Session)
	for _, x := range [][2]string{{"sso_start_url", p.StartURL}, {"sso_region", p.Region}, {"sso_registration_scopes", accountScope}} {
		config.Set(section, x[0], x[1])
	}
}

// StartURL is what names a service in the sso-session of a profile. Clients ask nothing of it, but the AWS CLI since 2.38 takes only those of AWS's own domain.
// See B209. The directory in the URL does not exist.
func StartURL(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return "https://d-00000" + hex.EncodeToString(sum[:])[:5] + ".awsapps.com/start"
}

// Token is what a sign-in leaves, in the form of the AWS CLI.
type Token struct {
	StartURL            string `json:"startUrl"`
	Region              string `json:"region"`
	AccessToken         string `json:"accessToken"`
	ExpiresAt           string `json:"expiresAt"`
	ClientID            string `json:"clientId"`
	ClientSecret        string `json:"clientSecret"`
	RegistrationExpires string `json:"registrationExpiresAt"`
	RefreshToken        string `json:"refreshToken,omitempty"`
}

// Cache is the directory of these tokens below a person's home.
func Cache(home string) string { return filepath.Join(home, ".aws", "sso", "cache") }

// TokenFile is the file of a profile's token. Profiles with the same sso-session share it.
func (p *Profile) TokenFile(home string) string {
	sum := sha1.Sum([]byte(p.Session)) // #nosec G401 -- names a file, as the AWS CLI does
	return filepath.Join(Cache(home), hex.EncodeToString(sum[:])+".json")
}

// SignedIn reports whether there is a token, which may have expired.
func (p *Profile) SignedIn(home string) bool {
	_, err := os.Stat(p.TokenFile(home))
	return err == nil
}

func (p *Profile) store(home string, t Token) error {
	content, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.MakeDir(Cache(home), 0o700), atomicfile.Write(p.TokenFile(home), content, 0o600))
}

// load returns the token; a zero one if there is none.
func (p *Profile) load(home string) (t Token, err error) {
	content, err := os.ReadFile(p.TokenFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &t)
	}
	if err != nil {
		return t, fmt.Errorf("read the sign-in: %w", err)
	}
	return t, nil
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
