//! Defaults of the S3 family: region, endpoint and storage class of each type, as gobackup has
//! them. `R` stands for the region, `A` for the account.

/// Defaults of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Value of `Storage.spec.type`.
    pub name: &'static str,
    region: &'static str,
    endpoint: &'static str,
    class: &'static str,
}

const fn family(
    name: &'static str,
    region: &'static str,
    endpoint: &'static str,
    class: &'static str,
) -> Family {
    Family {
        name,
        region,
        endpoint,
        class,
    }
}

const ALL: &[Family] = &[
    family("s3", "us-east-1", "", "STANDARD_IA"),
    family("b2", "us-east-001", "{R}.backblazeb2.com", "STANDARD"),
    family("us3", "s3-cn-bj", "{R}.ufileos.com", "ARCHIVE"),
    family("cos", "ap-nanjing", "cos.{R}.myqcloud.com", "STANDARD_IA"),
    family("kodo", "cn-east-1", "s3-{R}.qiniucs.com", "LINE"),
    family("r2", "us-east-1", "{A}.r2.cloudflarestorage.com", ""),
    family("spaces", "nyc1", "{R}.digitaloceanspaces.com", "STANDARD"),
    family("bos", "bj", "s3.{R}.bcebos.com", "STANDARD_IA"),
    family("oss", "cn-hangzhou", "oss-{R}.aliyuncs.com", "STANDARD_IA"),
    family("minio", "us-east-1", "", ""),
    family(
        "obs",
        "cn-north-1",
        "obs.{R}.myhuaweicloud.com",
        "STANDARD_IA",
    ),
    family("tos", "cn-beijing", "tos-s3-{R}.volces.com", "STANDARD_IA"),
    family("upyun", "", "s3.api.upyun.com", ""),
];

/// The family of a type, in lower case.
pub fn find(type_: &str) -> Option<Family> {
    ALL.iter().copied().find(|f| f.name == type_)
}

impl Family {
    /// Region where the Storage names none.
    pub fn region(self) -> &'static str {
        self.region
    }

    /// URL of the service where the Storage names none; `None` means AWS.
    pub fn endpoint(self, region: &str, account: &str) -> Option<String> {
        (!self.endpoint.is_empty()).then(|| {
            let host = self.endpoint.replace("{R}", region).replace("{A}", account);
            format!("https://{host}")
        })
    }

    /// Storage class where the Storage names none; `None` means the bucket's.
    pub fn storage_class(self) -> Option<String> {
        (!self.class.is_empty()).then(|| self.class.to_owned())
    }

    /// Path style is on but where the service refuses it.
    pub fn path_style(self) -> bool {
        !matches!(self.name, "oss" | "tos")
    }
}
