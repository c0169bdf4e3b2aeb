package main

import (
	"reflect"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// The kinds whose types are printed; everything they reach is printed with them.
var roots = []any{
	core.Pod{}, core.PodTemplate{}, core.Node{}, core.Namespace{}, core.Service{}, core.Endpoints{},
	core.ReplicationController{}, core.ConfigMap{}, core.Secret{}, core.ServiceAccount{}, core.Event{},
	core.LimitRange{}, core.ResourceQuota{}, core.PersistentVolume{}, core.PersistentVolumeClaim{}, core.Binding{},
	apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}, apps.DaemonSet{}, apps.ControllerRevision{},
	batch.Job{}, batch.CronJob{}, policy.PodDisruptionBudget{}, policy.Eviction{}, coordination.Lease{},
	events.Event{}, storage.StorageClass{}, storage.CSINode{}, storage.CSIDriver{}, storage.CSIStorageCapacity{},
	storage.VolumeAttachment{}, storage.VolumeAttributesClass{}, scheduling.PriorityClass{},
	resource.ResourceClaim{}, resource.ResourceClaimTemplate{}, resource.ResourceSlice{}, resource.DeviceClass{},
	rbac.Role{}, rbac.RoleBinding{}, rbac.ClusterRole{}, rbac.ClusterRoleBinding{},
	apiextensions.CustomResourceDefinition{}, apiregistration.APIService{},
	authorization.SubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
	authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectRulesReview{},
	authentication.TokenReview{}, authentication.TokenRequest{}, authentication.SelfSubjectReview{},
	autoscalingv1.Scale{}, autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv2.HorizontalPodAutoscaler{},
	networking.Ingress{}, networking.IngressClass{}, networking.NetworkPolicy{}, discovery.EndpointSlice{},
	admissionregistration.ValidatingWebhookConfiguration{}, admissionregistration.MutatingWebhookConfiguration{},
	admissionregistration.ValidatingAdmissionPolicy{}, admissionregistration.ValidatingAdmissionPolicyBinding{},
	metrics.NodeMetrics{}, metrics.PodMetrics{},
	meta.Status{}, meta.DeleteOptions{}, meta.ListMeta{}, meta.ObjectMeta{},
}

func rootTypes() []reflect.Type {
	var types []reflect.Type
	for _, r := range roots {
		types = append(types, reflect.TypeOf(r))
	}
	return types
}
