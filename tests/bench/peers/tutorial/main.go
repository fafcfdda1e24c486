// The controller of the well-known CronJob tutorial, built on controller-runtime: a peer for tests/bench/scheduling.py.
//
// Its reconcile goes the tutorial's way: get the object, list its Jobs by an index, write status whether it changed or
// not, delete Jobs beyond the history limits, step through the missed instants, create the Job, requeue.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	ownerKey    = ".metadata.controller"
	scheduledAt = "bench.tutorial/scheduled-at"
)

var groupVersion = schema.GroupVersion{Group: "bench.tutorial", Version: "v1"}

// Task is the tutorial's CronJob under another name.
type Task struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TaskSpec   `json:"spec,omitempty"`
	Status            TaskStatus `json:"status,omitempty"`
}

type TaskSpec struct {
	Schedule                   string                  `json:"schedule"`
	StartingDeadlineSeconds    *int64                  `json:"startingDeadlineSeconds,omitempty"`
	Suspend                    *bool                   `json:"suspend,omitempty"`
	JobTemplate                batchv1.JobTemplateSpec `json:"jobTemplate"`
	SuccessfulJobsHistoryLimit *int32                  `json:"successfulJobsHistoryLimit,omitempty"`
	FailedJobsHistoryLimit     *int32                  `json:"failedJobsHistoryLimit,omitempty"`
}

type TaskStatus struct {
	Active           []corev1.ObjectReference `json:"active,omitempty"`
	LastScheduleTime *metav1.Time             `json:"lastScheduleTime,omitempty"`
}

type TaskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Task `json:"items"`
}

func (in *Task) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.JobTemplate.DeepCopyInto(&out.Spec.JobTemplate)
	out.Status.Active = append([]corev1.ObjectReference(nil), in.Status.Active...)
	out.Status.LastScheduleTime = in.Status.LastScheduleTime.DeepCopy()
	return &out
}

func (in *TaskList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]Task, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Task)
	}
	return &out
}

type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

func finished(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var task Task
	if err := r.Get(ctx, req.NamespacedName, &task); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var children batchv1.JobList
	if err := r.List(ctx, &children, client.InNamespace(req.Namespace), client.MatchingFields{ownerKey: req.Name}); err != nil {
		return ctrl.Result{}, err
	}
	jobs := map[batchv1.JobConditionType][]*batchv1.Job{}
	var newest *time.Time
	for i := range children.Items {
		job := &children.Items[i]
		jobs[finished(job)] = append(jobs[finished(job)], job)
		if at, err := time.Parse(time.RFC3339, job.Annotations[scheduledAt]); err == nil && (newest == nil || newest.Before(at)) {
			newest = &at
		}
	}
	task.Status.LastScheduleTime = nil
	if newest != nil {
		task.Status.LastScheduleTime = &metav1.Time{Time: *newest}
	}
	task.Status.Active = nil
	for _, job := range jobs[""] {
		if found, err := reference.GetReference(r.scheme, job); err == nil {
			task.Status.Active = append(task.Status.Active, *found)
		}
	}
	if err := r.Status().Update(ctx, &task); err != nil {
		return ctrl.Result{}, err
	}
	r.prune(ctx, jobs[batchv1.JobFailed], task.Spec.FailedJobsHistoryLimit)
	r.prune(ctx, jobs[batchv1.JobComplete], task.Spec.SuccessfulJobsHistoryLimit)
	if task.Spec.Suspend != nil && *task.Spec.Suspend {
		return ctrl.Result{}, nil
	}
	due, next, err := instants(&task, time.Now())
	if err != nil {
		return ctrl.Result{}, nil
	}
	again := ctrl.Result{RequeueAfter: time.Until(next)}
	if due.IsZero() {
		return again, nil
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s-%d", task.Name, due.Unix()),
			Namespace:   task.Namespace,
			Labels:      map[string]string{},
			Annotations: map[string]string{scheduledAt: due.Format(time.RFC3339)},
		},
		Spec: *task.Spec.JobTemplate.Spec.DeepCopy(),
	}
	if err := ctrl.SetControllerReference(&task, job, r.scheme); err != nil {
		return again, nil
	}
	if err := r.Create(ctx, job); err != nil {
		return ctrl.Result{}, err
	}
	return again, nil
}

func (r *reconciler) prune(ctx context.Context, jobs []*batchv1.Job, limit *int32) {
	if limit == nil {
		return
	}
	sort.Slice(jobs, func(i, j int) bool {
		if jobs[i].Status.StartTime == nil {
			return jobs[j].Status.StartTime != nil
		}
		return jobs[i].Status.StartTime.Before(jobs[j].Status.StartTime)
	})
	for i := 0; i < len(jobs)-int(*limit); i++ {
		_ = r.Delete(ctx, jobs[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
}

// instants steps through what was missed and returns the newest of it and the next.
func instants(task *Task, now time.Time) (due, next time.Time, err error) {
	schedule, err := cron.ParseStandard(task.Spec.Schedule)
	if err != nil {
		return
	}
	from := task.CreationTimestamp.Time
	if task.Status.LastScheduleTime != nil {
		from = task.Status.LastScheduleTime.Time
	}
	if s := task.Spec.StartingDeadlineSeconds; s != nil {
		if earliest := now.Add(-time.Duration(*s) * time.Second); earliest.After(from) {
			from = earliest
		}
	}
	for at, n := schedule.Next(from), 0; !at.After(now); at, n = schedule.Next(at), n+1 {
		if n > 100 {
			return due, next, fmt.Errorf("too many missed start times")
		}
		due = at
	}
	return due, schedule.Next(now), nil
}

func main() {
	qps := flag.Float64("kube-api-qps", 0, "requests a second; 0 leaves the library's default")
	burst := flag.Int("kube-api-burst", 0, "burst; 0 leaves the library's default")
	workers := flag.Int("workers", 1, "objects worked on at a time")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseDevMode(false)))
	if err := run(float32(*qps), *burst, *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(qps float32, burst, workers int) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(groupVersion, &Task{}, &TaskList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	if qps > 0 {
		config.QPS, config.Burst = qps, burst
	} else {
		// What the library used before it left limiting to the server, and what the tutorial's text is about.
		config.QPS, config.Burst = 20, 30
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	index := func(object client.Object) []string {
		owner := metav1.GetControllerOf(object)
		if owner == nil || owner.APIVersion != groupVersion.String() || owner.Kind != "Task" {
			return nil
		}
		return []string{owner.Name}
	}
	if err := manager.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, ownerKey, index); err != nil {
		return err
	}
	r := &reconciler{Client: manager.GetClient(), scheme: scheme}
	err = ctrl.NewControllerManagedBy(manager).For(&Task{}).Owns(&batchv1.Job{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
