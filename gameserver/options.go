package gameserver

import (
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server"
)

// The ports that the service accepts from a server process. Most kernels give out free ports up to 60999, so a
// server that lets the kernel choose has to look at what it got.
const (
	PortMin = 1
	PortMax = 60000
)

// defaultEndTimeout is how long the game may take to clean up when nobody set a time. Supervisors commonly kill
// 90 s after they asked (systemd's default); reporting the end must fit in there too.
const defaultEndTimeout = 60 * time.Second

// Options say who this server process is and where its service is. Fields that the environment sets are replaced
// by the environment (see the package documentation).
type Options struct {
	WebSocketURL string // the service, "wss://host:port" or "ws://host:port"; a compute's GameLiftServiceSdkEndpoint
	AuthToken    string // from GetComputeAuthToken; leave empty to sign with the access key below
	FleetID      string // "fleet-…", not an ARN
	HostID       string // the name under which this host is registered in the fleet as a compute
	ProcessID    string // unique among all processes ever started; empty: one is made

	// An access key, instead of AuthToken.
	Region       string
	AccessKey    string
	SecretKey    string
	SessionToken string // only with temporary credentials

	Port     int      // where game clients connect, 1 to 60000; open before Start
	LogPaths []string // absolute paths of log files or folders that belong to the session

	// EndTimeout is how long OnDestroySessionBegin may take when the service named no time: after End, or when the
	// context of Start is cancelled. Default 60 s.
	EndTimeout time.Duration

	// KeepWhenEmpty switches the passive end off. Without it the process ends by itself when a player who had joined
	// with ValidatePlayerJoin has left and nobody is connected any more; a session that nobody has ever joined goes on.
	KeepWhenEmpty bool

	// EmptyTimeout ends a session in which nobody has joined with ValidatePlayerJoin that long after it became ACTIVE.
	// Zero: never.
	EmptyTimeout time.Duration

	SDK SDK // nil: the official one

	Logger *slog.Logger // default slog.Default(); what the SDK says comes at level debug, its warnings as such
}

// OptionsFrom makes options of what the official SDK's InitSDK takes. Set Port in them.
func OptionsFrom(p server.ServerParameters) Options {
	return Options{
		WebSocketURL: p.WebSocketURL, AuthToken: p.AuthToken, FleetID: p.FleetID, HostID: p.HostID, ProcessID: p.ProcessID,
		Region: p.AwsRegion, AccessKey: p.AccessKey, SecretKey: p.SecretKey, SessionToken: p.SessionToken,
	}
}

// AddFlags registers the flags that studios commonly start a server process with: -authtoken, -hostid, -fleetid,
// -websocketurl, -processid and -port. The values the fields have now are the defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.AuthToken, "authtoken", o.AuthToken, "`token` from get-compute-auth-token")
	fs.StringVar(&o.HostID, "hostid", o.HostID, "`name` under which this host is registered in the fleet")
	fs.StringVar(&o.FleetID, "fleetid", o.FleetID, "`id` of the fleet, fleet-…")
	fs.StringVar(&o.WebSocketURL, "websocketurl", o.WebSocketURL, "`URL` of the service, wss://host:port")
	fs.StringVar(&o.ProcessID, "processid", o.ProcessID, "`id` of this process, unique for ever (default: a random one)")
	fs.IntVar(&o.Port, "port", o.Port, "`port` on which game clients connect, 1 to 60000")
}

// OptionError says which option cannot be used, and what was expected of it.
type OptionError struct {
	Field string // the field of Options
	Value string // what it was; empty for secrets
	Want  string
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
	if o.ProcessID == "" {
		o.ProcessID = "process-" + strings.ToLower(rand.Text())
	}
	if o.EndTimeout == 0 {
		o.EndTimeout = defaultEndTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// check finds what the SDK would only report as a failed connection minutes later, or in words that do not name
// the option. container tells that the SDK itself finds out the host and the keys.
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
