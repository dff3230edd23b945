// Package penalties asks the studio's backend about each new penalty. The core cannot wait for the answer in the commit that imposes
// the penalty. The computed penalty therefore holds until an answer comes, and stays if none does.
package penalties
