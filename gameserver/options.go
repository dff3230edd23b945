package gameserver

import (
	"cmp"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server"
)

// The range of ports that the service accepts. Most kernels choose free ports up to 60999, so a server that lets the kernel choose
// must check the port.
const (
	PortMin = 1
	PortMax = 60000
)

// defaultEndTimeout is the default of Options.EndTimeout. Supervisors commonly kill a process 90 s after they have asked it to end
// (systemd's default), and the report of the end must fit in there too.
const defaultEndTimeout = 60 * time.Second

// Options identify this server process and its service. Environment variables override fields (see the package documentation).
type Options struct {
	WebSocketURL string // of the service, "wss://host:port" or "ws://host:port"; a compute's GameLiftServiceSdkEndpoint
	AuthToken    string // from GetComputeAuthToken; leave empty to sign with the access key below
	FleetID      string // "fleet-…", not an ARN
	HostID       string // the name of this host's compute in the fleet
	ProcessID    string // unique among all processes ever started; if empty, New chooses one

	// An access key, instead of AuthToken.
	Region       string // such as "us-east-1"; required with an access key
	AccessKey    string // its id
	SecretKey    string // its secret
	SessionToken string // only with temporary credentials

	Port     int      // to which game clients connect, 1 to 60000; open it before Start
	LogPaths []string // absolute paths of log files or folders that belong to the session

	// EndTimeout is how long OnDestroySessionBegin may take if the service sets no time: after End, or when the
	// context of Start is cancelled. Default 60 s; must not be negative.
	EndTimeout time.Duration

	// KeepWhenEmpty keeps the process alive without players. By default the process ends when the last player who had joined
	// with ValidatePlayerJoin has left. It does not end before the first player has joined.
	KeepWhenEmpty bool

	// EmptyTimeout ends a session this long after it became ACTIVE if no player has joined with ValidatePlayerJoin. Zero: never; must not
	// be negative.
	EmptyTimeout time.Duration

	SDK SDK // nil: the official one

	Logger *slog.Logger // default slog.Default(); receives the SDK's messages at level debug, and its warnings as warnings
}

// OptionsFrom converts the parameters of the official SDK's InitSDK to options. Port is not set.
func OptionsFrom(p server.ServerParameters) Options {
	return Options{
		WebSocketURL: p.WebSocketURL, AuthToken: p.AuthToken, FleetID: p.FleetID, HostID: p.HostID, ProcessID: p.ProcessID,
		Region: p.AwsRegion, AccessKey: p.AccessKey, SecretKey: p.SecretKey, SessionToken: p.SessionToken,
	}
}

// AddFlags registers the flags with which studios commonly start a server process: -authtoken, -hostid, -fleetid,
// -websocketurl, -processid and -port. The present values of the fields are the defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.AuthToken, "authtoken", o.AuthToken, "`token` from get-compute-auth-token")
	fs.StringVar(&o.HostID, "hostid", o.HostID, "`name` under which this host is registered in the fleet")
	fs.StringVar(&o.FleetID, "fleetid", o.FleetID, "`id` of the fleet, fleet-…")
	fs.StringVar(&o.WebSocketURL, "websocketurl", o.WebSocketURL, "`URL` of the service, wss://host:port")
	fs.StringVar(&o.ProcessID, "processid", o.ProcessID, "`id` of this process, unique for ever (default: a random one)")
	fs.IntVar(&o.Port, "port", o.Port, "`port` on which game clients connect, 1 to 60000")
}

// OptionError names an option with an impossible value.
type OptionError struct {
	Field string // the field of Options or GameInstanceOptions
	Value string // its value; empty if it is missing or a secret
	Want  string // the values that are possible
}

func (e *OptionError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("gameserver: option %s: want %s", e.Field, e.Want)
	}
	return fmt.Sprintf("gameserver: option %s is %q: want %s", e.Field, e.Value, e.Want)
}

// inForce returns the options with the environment and the defaults applied.
func (o Options) inForce(getenv func(string) string) Options {
	for key, field := range map[string]*string{
		"GAMELIFT_SDK_WEBSOCKET_URL": &o.WebSocketURL,
		"GAMELIFT_SDK_AUTH_TOKEN":    &o.AuthToken,
		"GAMELIFT_SDK_FLEET_ID":      &o.FleetID,
		"GAMELIFT_SDK_HOST_ID":       &o.HostID,
		"GAMELIFT_SDK_PROCESS_ID":    &o.ProcessID,
		"GAMELIFT_REGION":            &o.Region,
		"GAMELIFT_ACCESS_KEY":        &o.AccessKey,
		"GAMELIFT_SECRET_KEY":        &o.SecretKey,
		"GAMELIFT_SESSION_TOKEN":     &o.SessionToken,
	} {
		if value := getenv(key); value != "" {
			*field = value
		}
	}
	o.ProcessID = cmp.Or(o.ProcessID, "process-"+strings.ToLower(rand.Text()))
	o.EndTimeout = cmp.Or(o.EndTimeout, defaultEndTimeout)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// check finds mistakes that the SDK would report only minutes later as a failed connection, or without the name of
// the option. With container, the SDK itself finds the host and the keys.
func (o Options) check(container bool) error {
	u, err := url.Parse(o.WebSocketURL)
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" {
		return &OptionError{"WebSocketURL", o.WebSocketURL,
			"ws://host:port or wss://host:port (flag -websocketurl, environment GAMELIFT_SDK_WEBSOCKET_URL)"}
	}
	if o.FleetID == "" || strings.HasPrefix(o.FleetID, "arn:") {
		return &OptionError{"FleetID", o.FleetID,
			"a fleet id such as fleet-1234, not an ARN (flag -fleetid, environment GAMELIFT_SDK_FLEET_ID)"}
	}
	if o.HostID == "" && !container {
		return &OptionError{"HostID", o.HostID,
			"the name of a registered compute (flag -hostid, environment GAMELIFT_SDK_HOST_ID)"}
	}
	signed := o.Region != "" && (container || o.AccessKey != "" && o.SecretKey != "")
	if o.AuthToken == "" && !signed {
		return &OptionError{"AuthToken", "",
			"a token from get-compute-auth-token (flag -authtoken, environment GAMELIFT_SDK_AUTH_TOKEN), " +
				"or Region, AccessKey and SecretKey"}
	}
	if o.Port < PortMin || o.Port > PortMax {
		return &OptionError{"Port", fmt.Sprint(o.Port), "1 to 60000 (flag -port)"}
	}
	if o.EndTimeout < 0 {
		return &OptionError{"EndTimeout", o.EndTimeout.String(), "a positive duration"}
	}
	if o.EmptyTimeout < 0 {
		return &OptionError{"EmptyTimeout", o.EmptyTimeout.String(), "a duration from 0"}
	}
	return nil
}
