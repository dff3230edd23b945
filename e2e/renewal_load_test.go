package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// loadVariable has the profiles of the load, separated by commas. If it is set, this test binary runs the program below, so that its clock can be set.
const loadVariable = "E2E_LOAD_OF_PROFILES"

// renewing is a client with a profile, like a studio's backend: it uses the SDK's own credential chain and calls the service all the time.
type renewing struct {
	profile string
	config  aws.Config
	api     *gamelift.Client
	first   aws.Credentials

	mu     sync.Mutex
	report loadReport
	keys   map[string]bool
}

// loadReport is a client's report.
type loadReport struct {
	Profile  string
	Calls    int
	Keys     int       // temporary credentials that it has had
	Expires  time.Time // of the present ones
	Problems []string  // failed calls, and answers of the service with an error, also those that the SDK repeats
	First    string    // why the first credentials do not work; empty: they do, or nothing has asked
}

// loadCallers is how many goroutines call with each profile.
const loadCallers = 4

// renewingLoad calls the service with each profile until the standard input ends. Each line there is a command, and each answer a line with all reports: hold waits until no call is
// under way and lets none begin, go goes on, report changes nothing, first tries the credentials of the beginning.
func renewingLoad(profiles []string) int {
	ctx := context.Background()
	var gate sync.RWMutex // held for each call
	var all []*renewing
	for _, profile := range profiles {
		x, err := newRenewing(ctx, profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, profile, err)
			return 1
		}
		all = append(all, x)
		for n := range loadCallers {
			go func() {
				for {
					gate.RLock()
					x.call(ctx, n)
					gate.RUnlock()
					n++
					time.Sleep(time.Millisecond) // leaves the processor to others
				}
			}()
		}
	}
	out := json.NewEncoder(os.Stdout)
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch commands.Text() {
		case "hold":
			gate.Lock()
		case "go":
			gate.Unlock()
		case "first":
			for _, x := range all {
				x.tryFirst(ctx)
			}
		}
		var reports []loadReport
		for _, x := range all {
			x.mu.Lock()
			reports = append(reports, x.report)
			x.mu.Unlock()
		}
		if err := out.Encode(reports); err != nil {
			return 1
		}
	}
	return 0
}

func newRenewing(ctx context.Context, profile string) (*renewing, error) {
	x := &renewing{profile: profile, keys: map[string]bool{}, report: loadReport{Profile: profile}}
	var err error
	if x.config, err = config.LoadDefaultConfig(ctx, config.WithSharedConfigProfile(profile), config.WithHTTPClient(x)); err != nil {
		return nil, err
	}
	x.api = gamelift.NewFromConfig(x.config)
	if x.first, err = x.config.Credentials.Retrieve(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

var loadTransport = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// Do records refused calls and renewals.
func (x *renewing) Do(r *http.Request) (*http.Response, error) {
	answer, err := wholeAnswers{loadTransport, nil}.Do(r)
	switch {
	case err != nil:
		x.problem("%s %s: %v", r.Method, r.URL.Path, err)
	case answer.StatusCode >= http.StatusBadRequest:
		x.problem("%s %s: %s %s", r.Method, r.URL.Path, answer.Status, answer.Header.Get("X-Amzn-Errortype"))
	}
	return answer, err
}

func (x *renewing) problem(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.report.Problems) < 20 {
		x.report.Problems = append(x.report.Problems, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (x *renewing) call(ctx context.Context, n int) {
	var err error
	switch n % 4 {
	case 0:
		_, err = x.api.ListFleets(ctx, &gamelift.ListFleetsInput{})
	case 1:
		_, err = x.api.ListLocations(ctx, &gamelift.ListLocationsInput{})
	case 2:
		_, err = x.api.DescribeGameSessionQueues(ctx, &gamelift.DescribeGameSessionQueuesInput{})
	case 3:
		_, err = x.api.DescribeMatchmakingConfigurations(ctx, &gamelift.DescribeMatchmakingConfigurationsInput{})
	}
	if err != nil {
		x.problem("%v", err)
	}
	c, err := x.config.Credentials.Retrieve(ctx)
	if err != nil {
		x.problem("credentials: %v", err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys[c.AccessKeyID] = true
	x.report.Calls, x.report.Keys, x.report.Expires = x.report.Calls+1, len(x.keys), c.Expires
}

func (x *renewing) tryFirst(ctx context.Context) {
	options := x.api.Options()
	options.HTTPClient, options.RetryMaxAttempts = loadTransport, 1
	options.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return x.first, nil })
	if _, err := gamelift.New(options).ListFleets(ctx, &gamelift.ListFleetsInput{}); err != nil {
		x.mu.Lock()
		x.report.First = err.Error()
		x.mu.Unlock()
	}
}
