// A bare client for tests/bench/scheduling.py: no cache, no queue, no limit. It creates what it is told as fast as the API
// server answers, watches Jobs appear, and ends them as the Job controller would.
//
//	bare create -path PATH -template FILE -n N    POST the template N times, %d in it replaced by 0..N-1
//	bare watch -n N -slot UNIX -timeout SECONDS   report when N Jobs have appeared, relative to the slot
//	bare finish -n N                              set the status of N Jobs to Complete
//	bare count                                    requests the API server has answered, by verb and resource
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	path     = flag.String("path", "", "path of the collection")
	template = flag.String("template", "", "file with the object as JSON")
	n        = flag.Int("n", 0, "how many")
	workers  = flag.Int("workers", 64, "requests at a time")
	slot     = flag.Int64("slot", 0, "instant that counts as 0, seconds since 1970")
	timeout  = flag.Int("timeout", 600, "seconds until what is there is reported")
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

func main() {
	verb := os.Args[1]
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fail(err)
	}
	config.QPS = -1
	result, err := map[string]func(*rest.Config) (any, error){
		"create": create, "watch": watchJobs, "finish": finish, "count": count,
	}[verb](config)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bare:", err)
	os.Exit(1)
}

// client has a connection for each worker, as one HTTP/2 connection takes 250 requests at a time at most.
func client(config *rest.Config) (*http.Client, error) {
	return rest.HTTPClientFor(config)
}

func send(c *http.Client, config *rest.Config, method, path, kind string, body []byte) ([]byte, error) {
	for {
		request, err := http.NewRequest(method, strings.TrimSuffix(config.Host, "/")+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", kind)
		response, err := c.Do(request)
		if err != nil {
			return nil, err
		}
		answer, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case err != nil:
			return nil, err
		case response.StatusCode == http.StatusTooManyRequests:
			time.Sleep(time.Second)
		case response.StatusCode >= 300:
			return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
		default:
			return answer, nil
		}
	}
}

// each calls f for 0..n-1 with as many at a time as there are workers.
func each(n int, f func(int) error) (time.Duration, error) {
	next, failed := make(chan int), make(chan error, *workers)
	var group sync.WaitGroup
	start := time.Now()
	for range *workers {
		group.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	go func() {
		for i := range n {
			next <- i
		}
		close(next)
	}()
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case err := <-failed:
		return 0, err
	case <-done:
		return time.Since(start), nil
	}
}

func create(config *rest.Config) (any, error) {
	text, err := os.ReadFile(*template)
	if err != nil {
		return nil, err
	}
	c, err := client(config)
	if err != nil {
		return nil, err
	}
	took, err := each(*n, func(i int) error {
		body := bytes.ReplaceAll(text, []byte("%d"), []byte(strconv.Itoa(i)))
		_, err := send(c, config, http.MethodPost, *path, "application/json", body)
		return err
	})
	return map[string]float64{"seconds": took.Seconds(), "rate": float64(*n) / took.Seconds()}, err
}

func watchJobs(config *rest.Config) (any, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*timeout)*time.Second)
	defer cancel()
	list, err := client.Resource(jobs).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	var delays []float64
	seen := map[string]int{}
	// A busy API server ends a watch that is slow; it goes on where it was.
	for version := list.ResourceVersion; len(delays) < *n && ctx.Err() == nil; {
		watcher, err := client.Resource(jobs).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(metav1.Object)
			if !ok {
				return nil, fmt.Errorf("the watch failed: %v", event.Object)
			}
			version = object.GetResourceVersion()
			if event.Type != watch.Added {
				continue
			}
			delays = append(delays, time.Since(time.Unix(*slot, 0)).Seconds())
			if owner := object.GetOwnerReferences(); len(owner) > 0 {
				seen[string(owner[0].UID)]++
			}
			if len(delays) == *n {
				break
			}
		}
		watcher.Stop()
	}
	if len(delays) == 0 {
		return nil, fmt.Errorf("no Job appeared within %d s", *timeout)
	}
	sort.Float64s(delays)
	doubled := 0
	for _, times := range seen {
		doubled += times - 1
	}
	at := func(q float64) float64 { return delays[int(q*float64(len(delays)-1))] }
	// From the first to the last: how soon the first comes is the start delay's matter.
	rate := float64(len(delays)-1) / max(at(1)-at(0), 0.001)
	return map[string]float64{"jobs": float64(len(delays)), "rate": rate, "first": at(0), "p50": at(0.5), "p99": at(0.99), "last": at(1), "doubled": float64(doubled)}, nil
}

func finish(config *rest.Config) (any, error) {
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := meta.Resource(jobs).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	c, err := client(config)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) string {
		return fmt.Sprintf(`{"type":%q,"status":"True","reason":"CompletionsReached","lastTransitionTime":%q,"lastProbeTime":%q}`, kind, now, now)
	}
	body := fmt.Sprintf(`{"status":{"startTime":%q,"completionTime":%q,"succeeded":1,"uncountedTerminatedPods":{},"conditions":[%s,%s]}}`,
		now, now, condition("SuccessCriteriaMet"), condition("Complete"))
	took, err := each(min(*n, len(list.Items)), func(i int) error {
		job := list.Items[i]
		path := fmt.Sprintf("/apis/batch/v1/namespaces/%s/jobs/%s/status", job.Namespace, job.Name)
		_, err := send(c, config, http.MethodPatch, path, "application/merge-patch+json", []byte(body))
		return err
	})
	return map[string]float64{"seconds": took.Seconds(), "jobs": float64(len(list.Items))}, err
}

var line = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

func count(config *rest.Config) (any, error) {
	c, err := client(config)
	if err != nil {
		return nil, err
	}
	text, err := send(c, config, http.MethodGet, "/metrics", "application/json", nil)
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	for _, row := range strings.Split(string(text), "\n") {
		found := line.FindStringSubmatch(row)
		if found == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(found[1], -1) {
			labels[pair[1]] = pair[2]
		}
		value, _ := strconv.ParseFloat(found[2], 64)
		resource := labels["resource"]
		if labels["subresource"] != "" {
			resource += "/" + labels["subresource"]
		}
		sums[labels["verb"]+" "+resource] += value
	}
	return sums, nil
}
